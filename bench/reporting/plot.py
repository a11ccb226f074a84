"""The plots of bench/results. The same rows give the same bytes with the same version of matplotlib (Debian's python3-matplotlib)."""
import io
import math
import re
import statistics

import matplotlib
from matplotlib.figure import Figure, SubplotParams

from reporting.rows import Row
from reporting.tables import COLLECTIVES, POLICIES, SIZES, SUBMISSIONS, Table

matplotlib.use("svg")
STYLE = {"svg.hashsalt": "occl", "svg.fonttype": "none", "font.size": 8, "axes.grid": True, "grid.alpha": 0.4, "axes.axisbelow": True,
         "axes.spines.top": False, "axes.spines.right": False, "lines.markersize": 3, "lines.linewidth": 1.2,
         "legend.frameon": False, "figure.subplot.left": 0.07, "figure.subplot.right": 0.98}
Points = list[tuple[float, float]]


def version_of(svg: str) -> str:
    """The version of matplotlib that has written a plot."""
    found = re.search(r"Matplotlib v([\d.]+)", svg)
    return found[1] if found else ""


def select(rows: list[Row], **fields: str) -> list[Row]:
    return [row for row in rows if all(getattr(row, field) == value for field, value in fields.items())]


def by_bytes(rows: list[Row]) -> Points:
    return sorted((int(row.bytes), statistics.median(row.numbers())) for row in rows if row.numbers())


def size_text(size: float, _position: int = 0) -> str:
    for power, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << power:
            return f"{size / (1 << power):g}{unit}"
    return f"{size:g}"


def size_axis(axes, points: list[Points]) -> None:
    sizes = [size for series in points for size, _ in series]
    first, last = math.log2(min(sizes)), math.log2(max(sizes))
    axes.set_xscale("log", base=2)
    axes.set_xticks([2 ** exponent for exponent in range(int(first), int(last) + 1, 4)])
    axes.xaxis.set_major_formatter(size_text)
    axes.minorticks_off()


def ratio_panel(axes, title: str, series: dict[str, Points]) -> None:
    """Lines over the size; 1 is drawn, above it OCCL is the faster one."""
    series = {name: points for name, points in series.items() if points}
    axes.set_title(title, fontsize=9)
    axes.axhline(1, color="black", linewidth=0.8)
    for name, points in series.items():
        axes.plot(*zip(*points), marker="o", label=name)
    if series:
        size_axis(axes, list(series.values()))
    axes.set_yscale("log", base=2)
    ratios = [1.0, *(ratio for points in series.values() for _, ratio in points)]
    low, high = math.floor(math.log2(min(ratios)) - 0.1), math.ceil(math.log2(max(ratios)))
    axes.set_ylim(2 ** low, 2 ** high)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()


def ratio_figure(panels: dict[str, dict[str, Points]]) -> Figure:
    figure = Figure(figsize=(10, 5.2))
    grid = figure.subplots(2, 3)
    figure.subplots_adjust(hspace=0.32, bottom=0.07, top=0.9)
    for axes in grid.flat[len(panels):]:
        axes.set_axis_off()
    for axes, (title, series) in zip(grid.flat, panels.items()):
        ratio_panel(axes, title, series)
    if panels:
        handles, labels = max((axes.get_legend_handles_labels() for axes in grid.flat), key=lambda both: len(both[1]))
        figure.legend(handles, labels, loc="upper center", ncol=max(len(labels), 1))
    return figure


def host(rows: list[Row]) -> Figure:
    ratios = select(rows, library="Open MPI", metric="ratio")
    ranks = sorted({row.ranks for row in ratios}, key=int)
    return ratio_figure({case: {f"{n} ranks": by_bytes(select(ratios, case=case, ranks=n)) for n in ranks}
                         for case in COLLECTIVES if select(ratios, case=case)})


def gpus(rows: list[Row]) -> Figure:
    ratios = select(rows, metric="ratio")
    shown = {"graph": ("graph", "outofplace"), "graph, in place": ("graph", "inplace"), "stream": ("stream", "outofplace"),
             "blocking": ("blocking", "outofplace")}
    return ratio_figure({case: {name: by_bytes(select(ratios, case=case, way=way, place=place))
                                for name, (way, place) in shown.items()}
                         for case in COLLECTIVES if select(ratios, case=case)})


def overview(tables: dict[str, list[Row]]) -> Figure:
    """The GPUs of several tables beside each other: in a graph, out of place."""
    ratios = {name: select(rows, metric="ratio", way="graph", place="outofplace") for name, rows in tables.items()}
    return ratio_figure({case: {name: by_bytes(select(rows, case=case)) for name, rows in ratios.items()}
                         for case in COLLECTIVES if any(select(rows, case=case) for rows in ratios.values())})


def time_panel(axes, series: dict[str, Points]) -> None:
    series = {name: points for name, points in series.items() if points}
    for name, points in series.items():
        axes.plot(*zip(*points), marker="o", label=name)
    size_axis(axes, list(series.values()))
    axes.set_yscale("log")
    axes.set_ylabel("us")
    axes.legend()


def eight(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(6, 4), subplotpars=SubplotParams(left=0.1))
    times = select(rows, metric="time")
    ways = sorted({(row.library, row.way) for row in times})
    time_panel(figure.subplots(), {f"{library}, {way}": by_bytes(select(times, library=library, way=way))
                                   for library, way in ways})
    return figure


def asynchronous(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(10, 4))
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(wspace=0.75, bottom=0.12)
    single = select(rows, case="allreduce, from host to host", metric="time", ranks="2")
    time_panel(left, {**{way: by_bytes(select(single, way=way)) for way in SUBMISSIONS},
                      "NCCL": by_bytes(select(single, library="NCCL"))})
    steps = [row for row in rows if row.case.startswith("training step") and row.metric == "time" and row.ranks == "2"]
    steps.sort(key=lambda row: -statistics.median(row.numbers()))
    right.barh([f"{row.library}, {row.way.removesuffix(', each rank in its own random order')}" for row in steps],
               [statistics.median(row.numbers()) for row in steps],
               color=["C0" if row.library == "OCCL" else "C1" for row in steps])
    right.set_xlabel("us, a step of training on 2 GPUs")
    return figure


def programs(rows: list[Row]) -> Figure:
    cases = [case for case in dict.fromkeys(row.case for row in rows)
             if select(rows, case=case, library="MSCCLang", metric=f"predicted, {SIZES[0]}")]
    figure = Figure(figsize=(8, 1 + 0.22 * len(cases)))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.42, top=0.95, bottom=0.14)
    for size in SIZES:
        ratios = []
        for case in cases:
            ours, theirs = (select(rows, case=case, library=library, metric=f"predicted, {size}")[0].numbers()[0]
                            for library in ("OCCL", "MSCCLang"))
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
    cases = [case for case in dict.fromkeys(row.case for row in rows) if select(rows, case=case, library="MSCCLang")]
    figure = Figure(figsize=(8, 1 + 0.28 * len(cases)))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.32, top=0.97, bottom=0.08)
    for number, (library, shift) in enumerate((("OCCL", -0.2), ("MSCCLang", 0.2))):
        places, values = [], []
        for place, case in enumerate(cases):
            found = [row for row in select(rows, case=case, library=library) if row.metric in ("time", "processor time")]
            if found and found[0].numbers():
                places.append(place + shift)
                values.append(statistics.median(found[0].numbers()))
        axes.barh(places, values, height=0.38, color=f"C{number}", label="occlc" if library == "OCCL" else library)
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
            axes.plot(select(series, case=case, metric=metric, way=policy)[0].numbers(), label=policy)
        axes.legend()
        axes.set_ylim(bottom=0)
    figure.subplots_adjust(hspace=0.28, bottom=0.06, top=0.94)
    return figure


def runtime(rows: list[Row]) -> Figure:
    queues = select(rows, case="completion queue")
    figure = Figure(figsize=(5, 3))
    axes = figure.subplots()
    figure.subplots_adjust(left=0.13, bottom=0.15)
    for way in dict.fromkeys(row.way for row in queues):
        axes.plot(*zip(*((int(row.ranks), row.numbers()[0]) for row in select(queues, way=way))), marker="o", label=way)
    axes.set_yscale("log")
    axes.set_xlabel("threads")
    axes.set_ylabel("ns an entry")
    if queues:
        axes.legend()
    return figure


def svg_of(draw, rows) -> str:
    with matplotlib.rc_context(STYLE):
        text = io.StringIO()
        draw(rows).savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def plot(table: Table, rows: list[Row]) -> str:
    return svg_of(globals()[table.plot], rows)
