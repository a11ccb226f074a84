"""Line charts side by side as SVG, without any library."""
import collections
import html
import math

# A chart; `series` is a list of Series.
Panel = collections.namedtuple("Panel", "title x_label series")
# `values` by x = 0, 1, 2, ...
Series = collections.namedtuple("Series", "name values")

WIDTH, HEIGHT = 520, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 60, 15, 40, 45
COLORS = ("#c0392b", "#2471a3", "#1e8449", "#7d3c98")


def ticks(largest, wanted=5):
    """Round numbers from 0 to at least `largest`."""
    raw = max(largest, 1) / wanted
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= raw)
    return [i * step for i in range(math.ceil(max(largest, 1) / step) + 1)]


def text(x, y, content, anchor="middle", size=11, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{html.escape(content)}</text>'


def line(x1, y1, x2, y2, color):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'


def draw_panel(panel, left, top):
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    numbers = max(len(series.values) for series in panel.series)
    y_ticks = ticks(max(max(series.values) for series in panel.series))
    x_ticks = [x for x in ticks(numbers - 1) if x <= numbers - 1]

    def place_x(x):
        return left + LEFT + x / max(numbers - 1, 1) * inner_width

    def place_y(y):
        return top + TOP + inner_height - y / y_ticks[-1] * inner_height

    parts = [text(left + WIDTH / 2, top + 18, panel.title, size=13, more=' font-weight="bold"')]
    for y in y_ticks:
        parts.append(line(place_x(0), place_y(y), place_x(numbers - 1), place_y(y), "#dddddd"))
        parts.append(text(place_x(0) - 6, place_y(y) + 4, f"{y:g}", anchor="end"))
    for x in x_ticks:
        parts.append(text(place_x(x), top + TOP + inner_height + 16, f"{x:g}"))
    parts.append(text(left + LEFT + inner_width / 2, top + HEIGHT - 10, panel.x_label))
    for number, (series, color) in enumerate(zip(panel.series, COLORS)):
        points = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in enumerate(series.values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.3"/>')
        key = left + LEFT + 12 + 90 * number
        parts.append(line(key, top + 31, key + 18, top + 31, color))
        parts.append(text(key + 23, top + 35, series.name, anchor="start"))
    return parts


def draw(panels, columns):
    """The panels row by row, as the text of an SVG file."""
    rows = math.ceil(len(panels) / columns)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * WIDTH}" height="{rows * HEIGHT}" '
             'font-family="sans-serif">', '<rect width="100%" height="100%" fill="white"/>']
    for number, panel in enumerate(panels):
        parts += draw_panel(panel, number % columns * WIDTH, number // columns * HEIGHT)
    return "\n".join(parts + ["</svg>", ""])
