"""The tables of bench/results: what each one says, how its page is laid out, and what is drawn
of it."""

from reporting.layout import Column, Quotient, Table, View

# Those that plans promise by name (plan/collectives/collectives.def).
COLLECTIVES = ("allreduce", "allgather", "reducescatter", "broadcast", "reduce", "alltoall")


def gpu_table(number: int) -> Table:
    ways = ("stream", "graph", "blocking")
    columns = [
        Column(f"{name}: {way}", library, way)
        for library, name in (("OCCL", "OCCL"), ("NCCL", "NCCL"), ("NCCL symmetric", "symmetric"))
        for way in ways
    ]
    columns += [Column(f"NCCL / OCCL: {way}", "best NCCL", way, "ratio") for way in ways]
    return Table(
        title=f"Collectives on {number} GPUs",
        text="""Microseconds for one operation through the C interface, a process for each rank:
in a stream, in a CUDA graph of ten, and one at a time from the call until the host has seen the
end (blocking). Bytes are those of the larger buffer of a rank. NCCL takes turns with OCCL in the
same processes: as it is, and with symmetric memory. Ordinary: all buffers are of cudaMalloc, and
the library chooses the plans; bfloat16: else elements are floats. sendrecv: what each rank sends
to the next one (ring) or to each one, itself too (pairs); bytes are those to one rank. The ratio is the faster NCCL's time divided
by OCCL's, from times that are not rounded: above 1 OCCL is the faster one.""",
        views=(
            View((("case", "collective"), ("place", "place"), ("bytes", "bytes")), tuple(columns)),
        ),
        plot="gpus",
        cases=COLLECTIVES,
        caption="The faster NCCL's time divided by OCCL's; above 1 OCCL is the faster one.",
    )


HOST = Table(
    title="Collectives and partitioned sends on one host",
    text="""Microseconds of the slowest rank: median and 99th percentile of the operations, up to
8 KiB of the middle one of three runs. Ranks are processes. OCCL (`occlCall`), Open MPI and plain
copying (memcpy of as many bytes in all ranks at once) take turns in the same processes, a
stretch of operations each, a barrier before each operation. Broadcast is in place. The ratios
are the other's time divided by OCCL's, from times that are not rounded: above 1 OCCL is the
faster one.

A partitioned send (`bench:host_partitioned`) from the moment when its last partition is made until
the receiver has all, the median; a late one is made 400 microseconds after the others: 4 % of 10 ms
of computation. OCCL's receiver waits by occlPwait, which sleeps meanwhile, or polls by occlPtest,
as Open MPI's waits do. One MPI_Send of all is also what MPICH 4.0 makes of a partitioned send.""",
    views=(
        View(
            (("case", "collective"), ("ranks", "ranks"), ("bytes", "bytes")),
            (
                Column("OCCL"),
                Column("p99", metric="p99"),
                Column("Open MPI", "Open MPI"),
                Column("p99", "Open MPI", metric="p99"),
                Column("copying", "memcpy"),
                Column("Open MPI / OCCL", "Open MPI", metric="ratio"),
                Column("copying / OCCL", "memcpy", metric="ratio"),
            ),
            cases=COLLECTIVES,
        ),
        View(
            (("bytes", "bytes"), ("way", "partitions")),
            (
                Column("OCCL"),
                Column("OCCL, polling", "OCCL, polling"),
                Column("one MPI_Send", "one MPI_Send"),
                Column("MPI_Isend each", "MPI_Isend each"),
                Column("MPI_Send_init each", "MPI_Send_init each"),
                Quotient(
                    "one MPI_Send / polling",
                    Column("", "one MPI_Send"),
                    Column("", "OCCL, polling"),
                ),
            ),
            "Partitioned sends",
            ("partitioned send",),
        ),
    ),
    plot="host",
    cases=COLLECTIVES,
    caption="Open MPI's time divided by OCCL's; above 1 OCCL is the faster one.",
)

EIGHT = Table(
    title="All-reduce on 8 GPUs",
    text="""Microseconds for one all-reduce. The kernels of OCCL in this tree have not been
measured on 8 GPUs, so OCCL's column is empty. What is known is what to compare with: NCCL in a
CUDA graph, and kernels written by hand for this shape (`bench/gpu/kernels/probe.cu`) in a loop on the
device, without launches.""",
    views=(
        View(
            (("case", "collective"), ("bytes", "bytes")),
            (
                Column("OCCL: graph", way="graph"),
                Column("NCCL: graph", "NCCL", "graph"),
                *(
                    Column(f"by hand, {way}: loop", "by hand", way)
                    for way in ("one-shot LL", "one-shot push", "one-shot pull", "two-shot")
                ),
            ),
        ),
    ),
    plot="eight",
    cases=COLLECTIVES,
    caption="Time of an all-reduce on 8 GPUs.",
)

# What occlCall has taken the place of comes with its figures all the same.
SUBMISSIONS = ("occlStart", "in the stream", "occlCall")
ASYNCHRONOUS = Table(
    title="Asynchronous collectives",
    text="""Microseconds from submission to completion, and what conflicting orders cost. On GPUs
ranks are threads of one process but in the training step, where they are processes; on hosts
they are threads. `occlStart` with `occlWait` is the persistent kernel, "in the stream" as well,
in the order of a stream; these, `occlCall` and NCCL are followed by `cudaStreamSynchronize`.""",
    views=(
        View(
            (("ranks", "GPUs"), ("bytes", "bytes")),
            (
                *(
                    column
                    for way in SUBMISSIONS
                    for column in (Column(way, way=way), Column("p99", way=way, metric="p99"))
                ),
                Column("NCCL", "NCCL", "ncclAllReduce"),
            ),
            "One all-reduce from host to host, on GPUs",
            ("allreduce, from host to host",),
        ),
        View(
            (("case", "step"), ("way", "way"), ("ranks", "GPUs")),
            (Column("OCCL"), Column("NCCL", "NCCL"), Column("NCCL symmetric", "NCCL symmetric")),
            "The gradients of ResNet-50, on GPUs",
            ("training step",),
        ),
        View(
            (("case", "the other rank is late by"), ("way", "mode")),
            (Column("10 %", metric="p10"), Column("median"), Column("90 %", metric="p90")),
            "A rank that is late, on 2 GPUs",
            ("late rank",),
        ),
        View(
            (("ranks", "ranks"), ("bytes", "bytes")),
            (
                Column("same order", way="same order"),
                Column("random orders", way="random orders"),
                Quotient(
                    "random / same", Column("", way="random orders"), Column("", way="same order")
                ),
                Column("cost, round trips of a flag", way="random orders", metric="cost"),
            ),
            "Eight all-reduces at once, on one host, for each",
            ("eight allreduces",),
        ),
        View(
            (("ranks", "ranks"), ("way", "way")),
            (Column("OCCL"), Column("Open MPI", "Open MPI")),
            "An all-reduce of 64 bytes, on one host",
            ("allreduce, submission to completion",),
        ),
    ),
    plot="asynchronous",
    caption="An all-reduce from host to host on 2 GPUs, and a step of training.",
)

SIZES = ("64KiB", "1MiB", "64MiB")
PROGRAMS = Table(
    title="Programs: schedules beside MSCCLang's",
    text="""MSCCLang's example programs and their counterparts here, from source without
annotations, for no more channels and thread blocks and the same alias modes. Predicted
microseconds of both are the cost model's for H200 (protocol Simple), for 64 KiB, 1 MiB and 64
MiB a part; measured ones are of ranks that are threads of one process, both plans in turns,
medians of the runs' medians. Empty: MSCCLang has no plan, or none that imports.""",
    views=(
        View(
            (("case", "program"),),
            (
                *(
                    Column(f"{title}: {name}", library, metric=metric)
                    for metric, title in (
                        ("channels", "channels"),
                        ("blocks", "thread blocks of a rank"),
                    )
                    for library, name in (("MSCCLang", "MSCCLang"), ("OCCL", "OCCL"))
                ),
                *(
                    Column(f"predicted, {size}: {name}", library, metric=f"predicted, {size}")
                    for size in SIZES
                    for library, name in (("MSCCLang", "MSCCLang"), ("OCCL", "OCCL"))
                ),
                Column("measured: MSCCLang", "MSCCLang"),
                Column("OCCL"),
                Column("OCCL / MSCCLang, median of pairs", metric="ratio"),
            ),
        ),
    ),
    plot="programs",
    caption="MSCCLang's predicted time divided by occlc's; above 1 occlc's plan is the faster one.",
)

COMPILE_TIME = Table(
    title="Compile time",
    text="""Seconds by the clock and the largest resident set of whole `occlc compile` processes,
plan verified and written as CBOR, and of `occlc verify`; the least of several runs (until
November the median), of single ones where one takes more than 5 s. Where other work ran beside,
processor seconds, of all threads, say more than the clock's. MSCCLang's figures are processor
seconds and peak memory of its compiler on another machine of two cores; "fails" is an error of its
own, "> t" was stopped after t.""",
    views=(
        View(
            (("case", "program"),),
            (
                Column("occlc, s"),
                Column("processor, s", metric="processor time"),
                Column("MB", metric="memory"),
                Column("goal, s", metric="goal"),
                Column("MSCCLang, s", "MSCCLang", metric="processor time"),
                Column("MB", "MSCCLang", metric="memory"),
            ),
        ),
    ),
    plot="compile_time",
    caption="Seconds of occlc and of MSCCLang for the same programs.",
)

POLICIES = ("before", "after", "no polling")
STICKINESS = Table(
    title="Stickiness: context switches and queue lengths",
    text="""Four ranks as processes submit the 161 gradient all-reduces of ResNet-50 (102 MB)
with callbacks, in one order; rank 2 sleeps 100 us before each submission. "before": the newest
first, each visit polls 1 us. "after": first in, first out, 20 us at the front, half of that at
the next position, twice as long for what moved. "no polling": first in, first out, one look a
visit, the default of more ranks than processors. Policies take turns; figures are medians of the
iterations. A context switch is a visit that moved nothing; the queue's length counts thread
blocks when the collective came in. Figure 9 of the OCCL paper shows the same.""",
    views=(
        View(
            (("case", "what"), ("metric", "count")),
            tuple(Column(way, way=way, metric="*") for way in POLICIES),
            cases=("iteration", "rank", "all ranks"),
        ),
    ),
    plot="stickiness",
    caption="By collective, in the order of submission.",
)

RUNTIME = Table(
    title="Costs of the runtime on hosts",
    text="""What the steps of a task's life cost, what the three forms of completion queue take
for an entry that is written and taken out, and the memory of a communicator of two ranks that
are threads. The OCCL paper's figures are of a GPU kernel.""",
    views=(
        View(
            (("case", "what"),),
            (
                Column("ns"),
                Column("bytes", metric="memory"),
                Column("OCCL paper, ns", "OCCL paper"),
            ),
        ),
        View(
            (("ranks", "threads"),),
            tuple(Column(way, way=way) for way in ("ring", "packed ring", "slots")),
            "Completion queues, ns an entry",
            ("completion queue",),
        ),
    ),
    plot="runtime",
    caption="Completion queues by the number of threads.",
)

TORCH_ROWS = (("case", "what"), ("ranks", "ranks"), ("bytes", "bytes"))


def beside(peer: str) -> tuple[Column | Quotient, ...]:
    return (
        Column("OCCL"),
        Column(peer, peer),
        Quotient(f"{peer} / OCCL", Column("", peer), Column("")),
    )


TORCH = Table(
    title="Programs of PyTorch: the backend on CPUs beside gloo, libnccl.so.2 beside NCCL",
    text="""Microseconds of a call or a step from Python on the slowest rank: the median over
rounds of the mean of a round's. Ranks are processes; on CPUs they have one thread of PyTorch's
each, and backends take turns in the same processes; on GPUs each library has processes of its own
in each round. The ratio is the other's time divided by OCCL's: above 1 OCCL is the faster one.""",
    views=(
        View(
            TORCH_ROWS,
            beside("gloo"),
            "On CPUs",
            ("all_reduce of float", "DDP step of ResNet-18"),
        ),
        View(
            TORCH_ROWS,
            beside("NCCL"),
            "On GPUs",
            ("all_reduce of bfloat16", "decoding", "training", "a token"),
        ),
    ),
    plot="torch",
    caption="The other's time divided by OCCL's; above 1 OCCL is the faster one.",
)

TABLES: dict[str, Table] = {
    "host": HOST,
    "gpus_2": gpu_table(2),
    "gpus_4": gpu_table(4),
    "gpus_8": EIGHT,
    "asynchronous": ASYNCHRONOUS,
    "programs": PROGRAMS,
    "compile_time": COMPILE_TIME,
    "stickiness": STICKINESS,
    "runtime": RUNTIME,
    "torch": TORCH,
}
