"""How the page of a table is laid out."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Column:
    """The figure of a row of the page whose fields are these."""

    title: str
    library: str = "OCCL"
    way: str | None = None
    metric: str = "time"


@dataclasses.dataclass(frozen=True)
class Quotient:
    """One column divided by another one, both of the same row of the page: the median where
    there are several figures."""

    title: str
    above: Column
    below: Column


@dataclasses.dataclass(frozen=True)
class View:
    """A part of a page: a row for each combination of `rows` among the rows whose case begins
    with one of `cases`."""

    rows: tuple[tuple[str, str], ...]  # field, title
    columns: tuple[Column | Quotient, ...]
    heading: str = ""
    cases: tuple[str, ...] = ("",)


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    text: str
    views: tuple[View, ...]
    plot: str  # a function of plot.py
    cases: tuple[str, ...] = ()  # the order of the rows
    caption: str = ""
