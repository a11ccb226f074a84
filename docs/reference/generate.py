#!/usr/bin/env python3
"""Writes the pages of docs/reference from what they describe.

  generate.py passes <Passes.md>
  generate.py operations <a dialect's page>...
      from what mlir-tblgen says of compiler/passes/Passes.td and of the dialects
  generate.py commands <program>...
      what the programs print with --help, and their subcommands
  generate.py results <runtime/api/occl_types.h>
      the results that calls return

A page goes to standard output. `make reference` writes all of them, and a test compares."""

import os
import re
import subprocess
import sys

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
    kinds = {"passes": passes, "operations": operations, "commands": commands, "results": results}
    if len(sys.argv) < 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    sys.stdout.write(kinds[sys.argv[1]](sys.argv[2:]))


if __name__ == "__main__":
    main()
