#!/usr/bin/env python3
"""Context switches and length of the task queue for each of ResNet-50's gradient all-reduces with one late rank, before and
after the stickiness adjustment: figure 9 of the OCCL paper. Prints a table; --report writes <report>.md and <report>.svg."""
import argparse
import collections
import os
import platform
import statistics
import subprocess
import sys
import tempfile

import svg

# What each of the compared runs asks the ranks for. Before: the newest first, as who fetches submissions eagerly has it, and every
# position in the queue polls as briefly as any. After, as the paper has it: first in, first out, and long at the front of the queue.
# No polling: the same order, one look a visit; the library's own choice for more ranks than processors.
POLICIES = {
    "before": ["--order", "newest", "--budget", "flat", "--spin-us", "1"],
    "after": ["--order", "fifo", "--budget", "front-heavy", "--spin-us", "20"],
    "no polling": ["--order", "fifo", "--budget", "no-polling"],
}
# A line of a rank's file.
Row = collections.namedtuple("Row", "iteration seconds collective preemptions vain_visits queue_length")


def compile_plans(occlc, algorithms, ranks, folder):
    plans = []
    for name, options in (("one_shot", ["--max-bytes", "16384"]), ("all_pairs", [])):
        plans.append(os.path.join(folder, name + ".plan.json"))
        subprocess.run([occlc, "compile", os.path.join(algorithms, name + ".coll"), "-D", f"ranks={ranks}", *options,
                        "-o", plans[-1]], check=True)
    return plans


def run(arguments, plans, policy, folder):
    """By rank, the rows of all iterations but the first."""
    output = os.path.join(folder, policy.replace(" ", "_"))
    command = [arguments.occl_run, "-n", str(arguments.ranks), "--", arguments.program, *POLICIES[policy], "--late-rank", str(arguments.late_rank), "--delay-us", str(arguments.delay_us),
               "--iterations", str(arguments.iterations + 1), "--output", output]
    for plan in plans:
        command += ["--plan", plan]
    subprocess.run(command, check=True)
    ranks = []
    for rank in range(arguments.ranks):
        with open(f"{output}.{rank}", encoding="utf-8") as lines:
            rows = [Row(int(i), float(s), *map(int, rest)) for i, s, *rest in map(str.split, lines)]
        ranks.append([row for row in rows if row.iteration > 0])
    return ranks


COLUMNS = (("preemptions", "preemptions"), ("vain_visits", "context switches"), ("queue_length", "length of the task queue"))


class Result:
    """What one policy did, over all rounds."""

    def __init__(self):
        self.rounds = []

    def seconds(self):
        """The slowest rank's time of each iteration."""
        times = []
        for ranks in self.rounds:
            by_iteration = collections.defaultdict(float)
            for row in (row for rows in ranks for row in rows):
                by_iteration[row.iteration] = max(by_iteration[row.iteration], row.seconds)
            times += by_iteration.values()
        return times

    def profile(self, rank, column):
        """By collective, the median over the iterations of what `rank` counted."""
        values = collections.defaultdict(list)
        for ranks in self.rounds:
            for row in ranks[rank]:
                values[row.collective].append(getattr(row, column))
        return [statistics.median(values[collective]) for collective in sorted(values)]


def shown_ranks(arguments):
    """A punctual rank and the late one, as in the paper."""
    return (0 if arguments.late_rank != 0 else 1, arguments.late_rank)


def table(arguments, results):
    lines = ["| | " + " | ".join(POLICIES) + " |", "|---|" + "---:|" * len(POLICIES)]

    def add(label, value, text="{:.1f}"):
        lines.append(f"| {label} | " + " | ".join(text.format(value(results[policy])) for policy in POLICIES) + " |")

    add("iteration, ms (median)", lambda result: statistics.median(result.seconds()) * 1e3)
    add("iteration, ms (longest)", lambda result: max(result.seconds()) * 1e3)
    for rank in shown_ranks(arguments):
        who = f"rank {rank}" + (", the late one" if rank == arguments.late_rank else "")
        for column, label in COLUMNS:
            add(f"{who}: {label}, mean of the collectives",
                lambda result, rank=rank, column=column: statistics.mean(result.profile(rank, column)))
            add(f"{who}: {label}, most of a collective",
                lambda result, rank=rank, column=column: max(result.profile(rank, column)), "{:.0f}")
    for rank in range(arguments.ranks):
        add(f"rank {rank}: context switches of an iteration", lambda result, rank=rank: sum(result.profile(rank, "vain_visits")), "{:.0f}")
    add("all ranks: context switches of an iteration",
        lambda result: sum(sum(result.profile(rank, "vain_visits")) for rank in range(arguments.ranks)), "{:.0f}")
    return "\n".join(lines)


def panels(arguments, results):
    for rank in shown_ranks(arguments):
        who = f"rank {rank}" + (" (late)" if rank == arguments.late_rank else "")
        for column, label in COLUMNS[1:]:
            yield svg.Panel(f"{label}, {who}", "collective, in the order of submission",
                            [svg.Series(policy, results[policy].profile(rank, column)) for policy in POLICIES])


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    return f"{model}, {os.cpu_count()} cores, Linux {'.'.join(platform.release().split('.')[:2])}"


def write_report(arguments, results, load):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    with open(arguments.report + ".svg", "w", encoding="utf-8") as file:
        file.write(svg.draw(list(panels(arguments, results)), columns=2))
    picture = os.path.basename(arguments.report) + ".svg"
    with open(arguments.report + ".md", "w", encoding="utf-8") as file:
        file.write(f"""# Stickiness: context switches and queue lengths

- Machine: {machine()}; load average at the start: {load:.1f}
- OCCL at commit {commit}; command: `make bench-stickiness`
- {arguments.ranks} ranks as processes submit the 161 gradient all-reduces of ResNet-50 (true sizes, 102 MB) with callbacks, all in
  the same order; rank {arguments.late_rank} sleeps {arguments.delay_us} us before each of its submissions.
- before: the newest first, and each visit polls equally short (order `newest`, budget `flat`, 1 us). after: first in, first out, and
  up to 20 us at the front, half of that at the next position and so on, twice as long for what moved at its last visit (`fifo`,
  `front-heavy`). no polling: first in, first out, one look a visit, which is the library's choice here, with more ranks than processors.
  They take turns in {arguments.rounds} rounds of {arguments.iterations} iterations (after one that does not count); numbers are medians of the iterations.
- A context switch is a visit that moved nothing; a preemption one that polled its budget out while others were open. The length of the
  queue, in thread blocks, is that when the collective came in. As in figure 9 of the OCCL paper, for a rank on time and the late one.
- How long the queue is depends on the program here, not on the policy: a rank on time submits all 161 before the first is complete, and the late one
  one every {arguments.delay_us} us and more. Who visits in vain depends on who has a processor: a rank that waits polls while its peers work, so
  the numbers of one rank say less than those of all together.

![context switches and queue lengths]({picture})

{table(arguments, results)}
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("occlc")
    parser.add_argument("occl_run")
    parser.add_argument("program", help="stickiness_rank")
    parser.add_argument("algorithms", help="folder of the all-reduce algorithms")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--late-rank", type=int, default=2)
    parser.add_argument("--delay-us", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", help="path of the report without its ending")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    results = {policy: Result() for policy in POLICIES}
    with tempfile.TemporaryDirectory() as folder:
        plans = compile_plans(arguments.occlc, arguments.algorithms, arguments.ranks, folder)
        for _ in range(arguments.rounds):
            for policy in POLICIES:
                results[policy].rounds.append(run(arguments, plans, policy, folder))
    print(table(arguments, results))
    if arguments.report:
        write_report(arguments, results, load)
        print(f"Written: {arguments.report}.md, {arguments.report}.svg", file=sys.stderr)


if __name__ == "__main__":
    main()
