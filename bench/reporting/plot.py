"""The plots of bench/results. The same rows give the same bytes with the same version of
matplotlib (Debian's python3-matplotlib)."""

import statistics

from matplotlib.figure import Figure, SubplotParams

from reporting.layout import Table
from reporting.panels import by_bytes, ratio_figure, select, svg_of, time_panel
from reporting.rows import Row
from reporting.tables import COLLECTIVES, POLICIES, SIZES, SUBMISSIONS


def host(rows: list[Row]) -> Figure:
    ratios = select(rows, library="Open MPI", metric="ratio")
    ranks = sorted({row.ranks for row in ratios}, key=int)
    return ratio_figure(
        {
            case: {f"{n} ranks": by_bytes(select(ratios, case=case, ranks=n)) for n in ranks}
            for case in COLLECTIVES
            if select(ratios, case=case)
        }
    )


def gpus(rows: list[Row]) -> Figure:
    ratios = select(rows, metric="ratio")
    shown = {
        "graph": ("graph", "outofplace"),
        "graph, in place": ("graph", "inplace"),
        "graph, ordinary": ("graph", "outofplace-ordinary"),
        "graph, ordinary, bfloat16": ("graph", "outofplace-bfloat16-ordinary"),
        "stream": ("stream", "outofplace"),
        "blocking": ("blocking", "outofplace"),
    }
    return ratio_figure(
        {
            case: {
                name: by_bytes(select(ratios, case=case, way=way, place=place))
                for name, (way, place) in shown.items()
            }
            for case in COLLECTIVES
            if select(ratios, case=case)
        }
    )


def overview(tables: dict[str, list[Row]]) -> Figure:
    """The GPUs of several tables beside each other: in a graph, out of place."""
    ratios = {
        name: select(rows, metric="ratio", way="graph", place="outofplace")
        for name, rows in tables.items()
    }
    return ratio_figure(
        {
            case: {name: by_bytes(select(rows, case=case)) for name, rows in ratios.items()}
            for case in COLLECTIVES
            if any(select(rows, case=case) for rows in ratios.values())
        }
    )


def eight(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(6, 4), subplotpars=SubplotParams(left=0.1))
    times = select(rows, metric="time")
    ways = sorted({(row.library, row.way) for row in times})
    time_panel(
        figure.subplots(),
        {
            f"{library}, {way}": by_bytes(select(times, library=library, way=way))
            for library, way in ways
        },
    )
    return figure


def asynchronous(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(10, 4))
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(wspace=0.75, bottom=0.12)
    single = select(rows, case="allreduce, from host to host", metric="time", ranks="2")
    time_panel(
        left,
        {
            **{way: by_bytes(select(single, way=way)) for way in SUBMISSIONS},
            "NCCL": by_bytes(select(single, library="NCCL")),
        },
    )
    steps = [
        row
        for row in rows
        if row.case.startswith("training step") and row.metric == "time" and row.ranks == "2"
    ]
    steps.sort(key=lambda row: -statistics.median(row.numbers()))
    right.barh(
        [
            f"{row.library}, {row.way.removesuffix(', each rank in its own random order')}"
            for row in steps
        ],
        [statistics.median(row.numbers()) for row in steps],
        color=["C0" if row.library == "OCCL" else "C1" for row in steps],
    )
    right.set_xlabel("us, a step of training on 2 GPUs")
    return figure


def programs(rows: list[Row]) -> Figure:
    cases = [
        case
        for case in dict.fromkeys(row.case for row in rows)
        if select(rows, case=case, library="MSCCLang", metric=f"predicted, {SIZES[0]}")
    ]
    figure = Figure(figsize=(8, 1 + 0.22 * len(cases)))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.42, top=0.95, bottom=0.14)
    for size in SIZES:
        ratios = []
        for case in cases:
            ours, theirs = (
                select(rows, case=case, library=library, metric=f"predicted, {size}")[0].numbers()[
                    0
                ]
                for library in ("OCCL", "MSCCLang")
            )
            ratios.append(theirs / ours)
        axes.plot(ratios, range(len(cases)), "o", label=size)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks(range(len(cases)), cases)
    axes.invert_yaxis()
    axes.legend(loc="lower right")
    return figure


def compile_time(rows: list[Row]) -> Figure:
    cases = [
        case
        for case in dict.fromkeys(row.case for row in rows)
        if select(rows, case=case, library="MSCCLang")
    ]
    figure = Figure(figsize=(8, 1 + 0.28 * len(cases)))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.32, top=0.97, bottom=0.08)
    for number, (library, shift) in enumerate((("OCCL", -0.2), ("MSCCLang", 0.2))):
        places, values = [], []
        for place, case in enumerate(cases):
            found = [
                row
                for row in select(rows, case=case, library=library)
                if row.metric in ("time", "processor time")
            ]
            if found and found[0].numbers():
                places.append(place + shift)
                values.append(statistics.median(found[0].numbers()))
        axes.barh(
            places,
            values,
            height=0.38,
            color=f"C{number}",
            label="occlc" if library == "OCCL" else library,
        )
    axes.set_xscale("log")
    axes.set_xlabel("s")
    axes.set_yticks(range(len(cases)), cases)
    axes.invert_yaxis()
    axes.legend()
    return figure


def stickiness(rows: list[Row]) -> Figure:
    series = [row for row in rows if row.case.startswith("each collective")]
    figure = Figure(figsize=(10, 5.6))
    panels = list(dict.fromkeys((row.case, row.metric) for row in series))
    for axes, (case, metric) in zip(figure.subplots(2, 2).flat, panels):
        axes.set_title(f"{metric}, {case.removeprefix('each collective, ')}", fontsize=9)
        for policy in POLICIES:
            axes.plot(
                select(series, case=case, metric=metric, way=policy)[0].numbers(), label=policy
            )
        axes.legend()
        axes.set_ylim(bottom=0)
    figure.subplots_adjust(hspace=0.28, bottom=0.06, top=0.94)
    return figure


def torch(rows: list[Row]) -> Figure:
    ratios = {}
    for row in select(rows, library="OCCL", metric="time"):
        same = select(rows, case=row.case, ranks=row.ranks, bytes=row.bytes)
        peer = next(other for other in same if other.library != row.library)
        size = f" of {row.bytes} bytes" if row.bytes else ""
        ratios[f"{row.case}{size}, {row.ranks} ranks, {peer.library}"] = statistics.median(
            peer.numbers()
        ) / statistics.median(row.numbers())
    figure = Figure(figsize=(8, 1 + 0.3 * len(ratios)))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.55, bottom=0.12, top=0.97)
    axes.barh(list(ratios), list(ratios.values()))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("the other / OCCL")
    axes.invert_yaxis()
    return figure


def runtime(rows: list[Row]) -> Figure:
    queues = select(rows, case="completion queue")
    figure = Figure(figsize=(5, 3))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.13, bottom=0.15)
    for way in dict.fromkeys(row.way for row in queues):
        axes.plot(
            *zip(*((int(row.ranks), row.numbers()[0]) for row in select(queues, way=way))),
            marker="o",
            label=way,
        )
    axes.set_yscale("log")
    axes.set_xlabel("threads")
    axes.set_ylabel("ns an entry")
    if queues:
        axes.legend()
    return figure


def plot(table: Table, rows: list[Row]) -> str:
    return svg_of(globals()[table.plot], rows)
