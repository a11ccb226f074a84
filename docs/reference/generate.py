#!/usr/bin/env python3
"""Writes the pages of docs/reference from what they describe.

  generate.py passes <Passes.md>
  generate.py operations <a dialect's page>...
      from what mlir-tblgen says of compiler/passes/Passes.td and of the dialects
  generate.py commands <program>...
      what the programs print with --help, and their subcommands
  generate.py results <runtime/api/occl_types.h>
      the results that calls return
  generate.py compile_options <occlc>
      python/occl/_generated/compile_options.py: the options of `occlc compile` as occl.compile takes them

A page goes to standard output. `make reference` writes all of them, and a test compares."""

import os
import re
import subprocess
import sys
import textwrap

NOTE = "<!-- Generated: see docs/reference/generate.py. `make reference` writes it anew. -->\n"


def titled(title: str, introduction: str, body: str) -> str:
    return f"{NOTE}# {title}\n\n{introduction}\n\n{body.strip()}\n"


def text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def passes(pages: list[str]) -> str:
    body = re.sub(r"<!--.*?-->\n", "", "".join(map(text_of, pages)))
    body = re.sub(r"^### ", "\n## ", body, flags=re.M)
    body = re.sub(r"^#### Options$", "Options:\n", body, flags=re.M)
    return titled("Passes", "What each pass of the compiler requires, ensures and refuses. "
                  "[compiler-passes.md](../compiler-passes.md) says how they play together; "
                  "`occl-opt` runs them one by one.", body)


def operations(pages: list[str]) -> str:
    body = re.sub(r"<!--.*?-->\n", "", "\n".join(map(text_of, pages)))
    body = re.sub(r"^\[TOC\]\n", "", body, flags=re.M)
    body = re.sub(r"^#", "##", body, flags=re.M)
    body = re.sub(r"[ \t]+$", "", body, flags=re.M)
    return titled("Operations", "The two dialects of the compiler: `chunk` says which chunks move, `inst` which "
                  "thread block of which rank moves them. [compiler.md](../compiler.md) has the way between them.",
                  re.sub(r"\n{3,}", "\n\n", body))


def help_of(command: list[str]) -> str:
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "80"}
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, env=environment, check=True)
    return re.sub(r"[ \t]+$", "", done.stdout, flags=re.M).strip()


def subcommands_in(text: str) -> list[str]:
    block = re.search(r"^Subcommands:\n((?: .*\n?)+)", text, flags=re.M)
    return re.findall(r"^  ([a-z]\S*)", block.group(1), flags=re.M) if block else []


def commands(programs: list[str]) -> str:
    parts = []
    for program in programs:
        name = os.path.basename(program)
        text = help_of([program])
        parts.append(f"## {name}\n\n```\n{text}\n```")
        for word in subcommands_in(text):
            parts.append(f"### {name} {word}\n\n```\n{help_of([program, word])}\n```")
    return titled("Commands", "What the programs print with `--help`. [tools.md](../tools.md) says what each is for; "
                  "`occl WORD` starts them, too.", "\n\n".join(parts))


# What occl.compile sets itself, and what is for people at a terminal.
NOT_OF_PYTHON = {"help", "define", "topology", "output", "emit", "stats", "print-pass-timing"}
PYTHON_HEAD = '''"""Generated: see docs/reference/generate.py. `make reference` writes it anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict

_PathLike = str | os.PathLike[str]


class CompileOptions(TypedDict, total=False):
    """The options of `occlc compile`; docs/compiler.md has more. A flag is True; an option that is
    False or None is not given."""
'''


def python_type(kind: str) -> str:
    """Of an option's values as the help has them: "UINT:SIZE ... ...", or nothing for a flag."""
    if not kind or kind.startswith("Excludes"):
        return "bool"
    word = re.split(r"[ :=]", kind)[0]
    types = {"UINT": "int", "TEXT": "str", "PATH": "_PathLike"}
    single = " | ".join("str" if part.islower() else types[part] for part in word.split("|"))
    if "SIZE" in kind:
        single = "int | str"
    return f"{single} | Sequence[{single}]" if kind.endswith("...") else single


def compile_options(programs: list[str]) -> str:
    (program,) = programs
    options = help_of([program, "compile"]).partition("\nOptions:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^  (?:-\w,)?--([a-z-]+) ?(.*?)(?:\n {20,}|  +)(.*(?:\n {20,}.*)*)$", options, flags=re.M)
    if len(found) != len(re.findall(r"^  -", options, flags=re.M)):
        sys.exit(f"{program} compile --help: not all of its options are understood")
    text = PYTHON_HEAD
    for name, kind, meaning in found:
        if name not in NOT_OF_PYTHON:
            wrapped = textwrap.wrap(" ".join(meaning.split()), 94, initial_indent="    # ", subsequent_indent="    # ")
            text += "\n" + "\n".join(wrapped) + f"\n    {name.replace('-', '_')}: {python_type(kind.strip())}\n"
    return text


def results(headers: list[str]) -> str:
    (header,) = headers
    block = re.search(r"typedef enum \{(.*?)\} occlResult_t;", text_of(header), flags=re.S)
    if not block:
        sys.exit(f"{header}: no occlResult_t")
    rows = []
    for name, value, comment in re.findall(r"(occl\w+)\s*=\s*(\d+),?\s*(?:/\*(.*?)\*/)?", block.group(1), flags=re.S):
        meaning = " ".join(comment.split()) or {"occlSuccess": "done"}.get(name, "a mistake of the library")
        rows.append(f"| {value} | `{name}` | {meaning} |")
    return titled("Results", "What calls return. `occlGetLastError` has the text of a call that was refused, "
                  "`occlCommGetLastError` why a communicator has failed: [failure.md](../failure.md).",
                  "| value | result | meaning |\n|---:|---|---|\n" + "\n".join(rows))


def main() -> None:
    kinds = {"passes": passes, "operations": operations, "commands": commands, "results": results,
             "compile_options": compile_options}
    if len(sys.argv) < 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    sys.stdout.write(kinds[sys.argv[1]](sys.argv[2:]))


if __name__ == "__main__":
    main()
