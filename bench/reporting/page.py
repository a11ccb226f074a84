"""The page of a table in Markdown: where its figures come from, the table itself, the plot."""

import statistics

from reporting.rows import Row
from reporting.layout import Column, Quotient, Table, View

EMPTY = "-"


def origin_lines(runs: list[dict[str, str]], letters: dict[str, str]) -> list[str]:
    """A line for each run; what is not known is left out."""
    lines = []
    for run in runs:
        parts = [
            run["date"],
            f"commit {run['commit']}" if run["commit"] else "commit not recorded",
            run["machine"],
            run["software"],
            run["conditions"],
        ]
        name = f"**{letters[run['run']]}** " if len(runs) > 1 else ""
        lines.append(f"- {name}{'; '.join(part for part in parts if part)}.")
        if run["command"]:
            lines.append(f"  `{run['command']}`")
    return lines


def matches(row: Row, column: Column) -> bool:
    return (
        row.library == column.library
        and (column.way is None or row.way == column.way)
        and column.metric in ("*", row.metric)
    )


def figure(rows: list[Row], column: Column) -> str:
    """As it was recorded: several figures of one row are separated by commas."""
    found = [row for row in rows if matches(row, column)]
    return (
        ", ".join(found[0].value.split(" "))
        if found and found[0].value != "fails"
        else "fails" if found else EMPTY
    )


def quotient(rows: list[Row], of: Quotient) -> str:
    values = []
    for column in (of.above, of.below):
        found = [number for row in rows if matches(row, column) for number in row.numbers()]
        if not found:
            return EMPTY
        values.append(statistics.median(found))
    return f"{values[0] / values[1]:.2f}" if values[1] else EMPTY


def cell(rows: list[Row], column: Column | Quotient) -> str:
    return quotient(rows, column) if isinstance(column, Quotient) else figure(rows, column)


def shown_columns(rows: list[Row], view: View) -> list[Column | Quotient]:
    """Those that have a figure, and those of OCCL's times: that these are missing is to be seen."""
    return [
        column
        for column in view.columns
        if isinstance(column, Quotient)
        or (column.library == "OCCL" and column.metric == "time")
        or any(matches(row, column) for row in rows)
    ]


def table_lines(rows: list[Row], view: View, letters: dict[str, str]) -> list[str]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, field) for field, _ in view.rows), []).append(row)
    columns = shown_columns(rows, view)
    fields = [
        (number, title)
        for number, (_, title) in enumerate(view.rows)
        if any(key[number] for key in groups)
    ]
    shows_run = len(letters) > 1
    titles = (
        [title for _, title in fields] + [column.title for column in columns] + ["run"] * shows_run
    )
    lines = [
        "| " + " | ".join(titles) + " |",
        "|" + "---|" * len(fields) + "---:|" * len(columns) + "---|" * shows_run,
    ]
    for key, group in groups.items():
        run = ["".join(sorted({letters[row.run] for row in group}))] if shows_run else []
        values = (
            [key[number] for number, _ in fields]
            + [cell(group, column) for column in columns]
            + run
        )
        lines.append("| " + " | ".join(values) + " |")
    return lines


def in_view(row: Row, table: Table, view: View) -> bool:
    """Views name the beginnings of their cases; one that names none has what the others leave."""
    if view.cases != ("",):
        return row.case.startswith(view.cases)
    return not any(
        row.case.startswith(other.cases) for other in table.views if other.cases != ("",)
    )


def page(name: str, table: Table, rows: list[Row], runs: dict[str, dict[str, str]]) -> str:
    used = [runs[run] for run in sorted({row.run for row in rows})]
    letters = {run["run"]: chr(ord("a") + number) for number, run in enumerate(used)}
    lines = [
        f"<!-- Written by bench/report.py from {name}.csv and runs.csv. -->",
        f"# {table.title}",
        "",
        table.text,
        "",
        *origin_lines(used, letters),
        "",
        f"![{table.caption}]({name}.svg)",
    ]
    for view in table.views:
        shown = [row for row in rows if in_view(row, table, view)]
        if not shown:
            continue
        lines += [
            "",
            *([f"## {view.heading}", ""] if view.heading else []),
            *table_lines(shown, view, letters),
        ]
    return "\n".join(lines) + "\n"
