"""What the compiler says about a program, and the exception that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._errors import Error


@dataclass(frozen=True)
class Note:
    """Another place that belongs to a diagnostic. None: no place."""

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning, as docs/tools.md describes it ("Errors for programs"). Lines and
    columns count from 1, columns in bytes; None where it is about the whole file."""

    severity: str
    message: str
    code: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    rank: int | None = None
    thread_block: int | None = None
    instruction: int | None = None
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        place = ":".join(str(p) for p in (self.file, self.line, self.column) if p is not None)
        code = f" [{self.code}]" if self.code else ""
        return f"{place}{': ' if place else ''}{self.severity}: {self.message}{code}"


class CompileError(Error, ValueError):
    """The compiler has refused a program, a plan or a topology. The text is what occlc prints, with
    the line and a caret; `diagnostics` are the same for programs."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...] = ()):
        super().__init__(text)
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.diagnostics)


class CompileWarning(UserWarning):
    """The compiler has made a plan and warns of something."""


def of_json(record: dict[str, Any]) -> Diagnostic:
    """A line of `occlc --diag-format=json`."""
    place = record.get("range") or {}
    notes = []
    for note in record.get("notes", ()):
        where = note.get("range") or {}
        notes.append(Note(note["message"], where.get("file"), where.get("line"),
                          where.get("column")))
    return Diagnostic(
        record["severity"], record["message"], record.get("code"), place.get("file"),
        place.get("line"), place.get("column"), place.get("endLine"), place.get("endColumn"),
        record.get("rank"), record.get("threadBlock"), record.get("instruction"), tuple(notes))
