"""What the plots of bench/results are made of: selections of rows, axes of sizes, panels of
ratios and of times; and how a figure becomes the text of an SVG file."""

import io
import math
import re
import statistics

import matplotlib
from matplotlib.figure import Figure

from reporting.rows import Row

matplotlib.use("svg")
STYLE = {
    "svg.hashsalt": "occl",
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.grid": True,
    "grid.alpha": 0.4,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 3,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "figure.subplot.left": 0.07,
    "figure.subplot.right": 0.98,
}
Points = list[tuple[float, float]]


def version_of(svg: str) -> str:
    """The version of matplotlib that has written a plot."""
    found = re.search(r"Matplotlib v([\d.]+)", svg)
    return found[1] if found else ""


def select(rows: list[Row], **fields: str) -> list[Row]:
    return [
        row for row in rows if all(getattr(row, field) == value for field, value in fields.items())
    ]


def by_bytes(rows: list[Row]) -> Points:
    return sorted(
        (int(row.bytes), statistics.median(row.numbers())) for row in rows if row.numbers()
    )


def size_text(size: float, _position: int = 0) -> str:
    for power, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << power:
            return f"{size / (1 << power):g}{unit}"
    return f"{size:g}"


def size_axis(axes, points: list[Points]) -> None:
    sizes = [size for series in points for size, _ in series]
    first, last = math.log2(min(sizes)), math.log2(max(sizes))
    axes.set_xscale("log", base=2)
    axes.set_xticks([2**exponent for exponent in range(int(first), int(last) + 1, 4)])
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
    axes.set_ylim(2**low, 2**high)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()


def ratio_figure(panels: dict[str, dict[str, Points]]) -> Figure:
    figure = Figure(figsize=(10, 5.2))
    grid = figure.subplots(2, 3)
    figure.subplots_adjust(hspace=0.32, bottom=0.07, top=0.9)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, (title, series) in zip(grid.flat, panels.items()):
        ratio_panel(axes, title, series)
    if panels:
        handles, labels = max(
            (axes.get_legend_handles_labels() for axes in grid.flat), key=lambda both: len(both[1])
        )
        figure.legend(handles, labels, loc="upper center", ncol=max(len(labels), 1))
    return figure


def time_panel(axes, series: dict[str, Points]) -> None:
    series = {name: points for name, points in series.items() if points}
    for name, points in series.items():
        axes.plot(*zip(*points), marker="o", label=name)
    size_axis(axes, list(series.values()))
    axes.set_yscale("log")
    axes.set_ylabel("us")
    axes.legend()


def svg_of(draw, rows) -> str:
    with matplotlib.rc_context(STYLE):
        text = io.StringIO()
        draw(rows).savefig(text, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
