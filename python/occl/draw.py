"""Schedules as a page to look at, which `occlc view` writes."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _occlc
from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    from .plan import Plan


class Drawing:
    """A page. Notebooks show it; save() writes it."""

    def __init__(self, html: str, title: str):
        self.html = html
        """The whole page; it needs no other file and no network."""
        self.title = title

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.title)}" '
                'style="width:100%;height:600px;border:1px solid #ddd"></iframe>')

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes an .html file, which browsers open."""
        path = Path(path)
        if path.suffix not in (".html", ".htm"):
            raise InvalidArgumentError(f"'{path}' does not end in .html")
        path.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"<occl.Drawing: {self.title}>"


def draw(plan: Plan, *, bytes: int | str, topology: str | os.PathLike[str] | None,
         define: dict[str, Any] | None, trace: str | os.PathLike[str] | None) -> Drawing:
    """See Plan.draw."""
    options = ["-o", "-", *_occlc.prediction_options(bytes, topology, define)]
    if trace is not None:
        options += ["--trace", os.path.abspath(os.fspath(trace))]
    title = f"{plan.name}: {plan.collective} of {plan.ranks} ranks"
    return Drawing(_occlc.on_plan("view", plan.data, options), title)
