"""Pictures of schedules: SVG that needs nothing else, for notebooks and files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _occlc
from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._plan.schedule import Message, Schedule, Span
    from .plan import Plan

_LABEL, _WIDTH, _LANE, _GAP, _TOP = 110.0, 1000.0, 20.0, 10.0, 46.0
_MOST_SHAPES = 50_000
_COLOURS = {"send": "#4e79a7", "recv": "#59a14f", "copy": "#9c9ede", "reduce": "#e15759",
            "recvReduceCopy": "#e15759", "recvCopySend": "#76b7b2", "recvReduceSend": "#f28e2b",
            "recvReduceCopySend": "#edc948", "loadReduceStore": "#b07aa1", "signal": "#4e79a7",
            "wait": "#e4e4e4"}
_STYLE = ("text{font:12px sans-serif;fill:#333}.m{stroke:#444;stroke-opacity:.55;fill:none}"
          ".s{stroke-dasharray:3 2}rect.i:hover{stroke:#000;stroke-width:1.5}")


class Drawing:
    """A picture. Notebooks show it; save() writes it."""

    def __init__(self, svg: str, title: str):
        self.svg = svg
        """The picture, an <svg> element."""
        self.title = title

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg}</div>'

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a file that browsers open: .svg or .html."""
        path = Path(path)
        if path.suffix == ".svg":
            path.write_text(self.svg, encoding="utf-8")
        elif path.suffix in (".html", ".htm"):
            path.write_text("<!doctype html><html><head><meta charset='utf-8'><title>"
                            f"{escape(self.title)}</title></head><body>{self._repr_html_()}"
                            "</body></html>", encoding="utf-8")
        else:
            raise InvalidArgumentError(f"'{path}' ends neither in .svg nor in .html")
        return path

    def __repr__(self) -> str:
        return f"<occl.Drawing: {self.title}>"


def draw(plan: Plan, *, bytes: int | str, topology: str | os.PathLike[str] | None,
         define: dict[str, Any] | None, by: str, ranks: Iterable[int] | None) -> Drawing:
    """See Plan.draw."""
    from ._plan import schedule as schedules

    if by not in ("time", "step"):
        raise InvalidArgumentError(f"by is {by!r}; it can be 'time' or 'step'")
    shown = list(range(plan.ranks)) if ranks is None else list(ranks)
    for rank in shown:
        plan._of_rank(rank)
    title = f"{plan.name}: {plan.collective} of {plan.ranks} ranks, {plan.protocol}"
    if by == "step":
        schedule = schedules.in_steps(plan)
        title += f", {round(schedule.end)} steps"
    else:
        options = _occlc.prediction_options(bytes, topology, define)
        schedule = schedules.predicted(plan, options)
        on = "shared memory" if topology is None else Path(topology).stem
        title += f", {bytes} a part, predicted on {on}: {_number(schedule.end)} us"
    return Drawing(_Picture(plan, schedule, shown, title).svg(), title)


def _number(value: float) -> str:
    return f"{value:.4g}"


class _Picture:
    def __init__(self, plan: Plan, schedule: Schedule, ranks: list[int], title: str):
        self.schedule, self.title = schedule, title
        self.scale = _WIDTH / schedule.end if schedule.end > 0 else 0.0
        self.y: dict[tuple[int, int], float] = {}
        self.labels: list[tuple[str, float]] = []
        y = _TOP
        for rank in ranks:
            blocks = max(1, len(plan.document["ranks"][rank]["threadBlocks"]))
            for block in range(blocks):
                self.y[rank, block] = y
                name = f"rank {rank}" if block == 0 else ""
                self.labels.append((name if blocks == 1 else f"{name} \u00b7 {block}", y))
                y += _LANE
            y += _GAP
        self.height = y + 46
        self.spans = [span for span in schedule.spans if (span.rank, span.block) in self.y]
        self.messages = [message for message in schedule.messages
                         if self._lane(message.sender) is not None
                         and self._lane(message.receiver) is not None]
        shapes = len(self.spans) + len(self.messages)
        if shapes > _MOST_SHAPES:
            raise InvalidArgumentError(
                f"the picture of plan '{plan.name}' would have {shapes} shapes, and at most "
                f"{_MOST_SHAPES} can be looked at: choose fewer ranks (ranks=range(8)), fewer "
                "bytes, or by='step'")

    def svg(self) -> str:
        width = _LABEL + _WIDTH + 30
        return "".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{self.height:g}" '
            f'viewBox="0 0 {width:g} {self.height:g}"><style>{_STYLE}</style>'
            '<defs><marker id="occl-arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" '
            'markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" fill="#444"/></marker></defs>'
            f'<rect width="100%" height="100%" fill="#fff"/>'
            f'<text x="8" y="18" style="font-weight:bold">{escape(self.title)}</text>',
            *self._axis(), *self._lanes(), *map(self._rect, self.spans),
            *map(self._arrow, self.messages), *self._legend(), "</svg>"])

    def _lane(self, span: Span) -> float | None:
        return self.y.get((span.rank, span.block))

    def _x(self, at: float) -> float:
        return _LABEL + at * self.scale

    def _lanes(self) -> Iterable[str]:
        for name, y in self.labels:
            yield (f'<text x="8" y="{y + 14:g}">{escape(name)}</text>'
                   f'<line x1="{_LABEL:g}" x2="{_LABEL + _WIDTH:g}" y1="{y + _LANE:g}" '
                   f'y2="{y + _LANE:g}" stroke="#eee"/>')

    def _axis(self) -> Iterable[str]:
        """Some ten ticks at round numbers."""
        end = self.schedule.end
        if end <= 0:
            return
        step = 10 ** math.floor(math.log10(end / 10))
        step *= next(factor for factor in (1, 2, 5, 10) if end / (step * factor) <= 12)
        if self.schedule.unit == "steps":
            step = max(1, step)
        for i in range(int(end / step) + 1):
            x = self._x(i * step)
            yield (f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{_TOP - 6:g}" y2="{self.height - 44:g}" '
                   f'stroke="#ddd"/><text x="{x + 2:.2f}" y="{_TOP - 10:g}" fill="#777">'
                   f'{_number(i * step)} {self.schedule.unit}</text>')

    def _legend(self) -> Iterable[str]:
        x = _LABEL
        for op in sorted({span.op for span in self.spans}):
            yield (f'<rect x="{x:g}" y="{self.height - 18:g}" width="12" height="12" rx="2" '
                   f'fill="{_COLOURS.get(op, "#bab0ac")}"/><text x="{x + 16:g}" '
                   f'y="{self.height - 8:g}">{escape(op)}</text>')
            x += 34 + 7 * len(op)

    def _rect(self, span: Span) -> str:
        y = self.y[span.rank, span.block]
        when = f"{_number(span.begin)} to {_number(span.end)} {self.schedule.unit}"
        thickness = 6.0 if span.op == "wait" else _LANE - 5
        inset = (_LANE - thickness) / 2
        width = max((span.end - span.begin) * self.scale, 0.5)
        return (f'<rect class="i" x="{self._x(span.begin):.2f}" y="{y + inset:g}" '
                f'width="{width:.2f}" height="{thickness:g}" rx="2" '
                f'fill="{_COLOURS.get(span.op, "#bab0ac")}"><title>'
                f'{escape(f"rank {span.rank}, thread block {span.block}: {span.text}")}\n'
                f'{when}</title></rect>')

    def _arrow(self, message: Message) -> str:
        """From where the sender has ended; where slices overlap, from its begin."""
        sender, receiver = message.sender, message.receiver
        left = sender.end if sender.end <= receiver.begin else sender.begin
        kind = "m s" if message.is_signal else "m"
        return (f'<line class="{kind}" marker-end="url(#occl-arrow)" x1="{self._x(left):.2f}" '
                f'y1="{self.y[sender.rank, sender.block] + _LANE / 2:g}" '
                f'x2="{self._x(receiver.begin):.2f}" '
                f'y2="{self.y[receiver.rank, receiver.block] + _LANE / 2:g}"/>')
