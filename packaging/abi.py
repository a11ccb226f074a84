#!/usr/bin/env python3
"""Writes what programs that are linked with liboccl.so.0 rely on: the functions that it exports, the sizes of the structures of
its headers, the offset and size of each of their fields, and the numbers of their enumerations.

  abi.py <library> <header>...    to standard output

packaging/abi.txt is what was written last; abi_test compares, `make abi` writes it anew. Needs gcc and nm."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = """# What programs that are linked with liboccl.so.0 rely on; see packaging/abi.py. `make abi` writes it anew.
# Behind a structure its size; behind a field its offset and its size; behind a name of an enumeration its number.
"""


def functions(library: str) -> list[str]:
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1].split("@")[0] for line in listed.splitlines()]
    return [f"function {name}" for name in sorted(names)]


def members(body: str) -> list[str]:
    """The names of the fields of a structure, without those of its comments."""
    names = []
    for declaration in filter(str.strip, body.split(";")):
        for part in declaration.split(","):
            name = re.search(r"(\w+)\s*(?:\[\w+\])?\s*$", part)
            if not name or "(" in part:
                sys.exit(f"abi.py: no name of a field in '{part.strip()}'")
            names.append(name[1])
    return names


def program(headers: list[str]) -> str:
    """In C, which prints what the headers have."""
    lines = []
    for path in headers:
        text = re.sub(r"/\*.*?\*/", "", pathlib.Path(path).read_text(encoding="utf-8"), flags=re.S)
        for kind, body, name in re.findall(r"^typedef (struct|enum) \{(.*?)\} (\w+);", text, re.M | re.S):
            size = f" %zu\\n\", sizeof({name})" if kind == "struct" else '\\n"'
            lines.append(f'printf("{kind} {name}{size});')
            if kind == "enum":
                lines += [f'printf("  {each} %d\\n", (int){each});' for each in re.findall(r"\bocc\w+", body)]
            else:
                lines += [f'printf("  {each} %zu %zu\\n", offsetof({name}, {each}), sizeof((({name} *)0)->{each}));'
                          for each in members(body)]
    includes = "".join(f'#include "{os.path.abspath(path)}"\n' for path in headers)
    return (f"#include <stddef.h>\n#include <stdio.h>\n{includes}int main(void) {{\n"
            'printf("version %d.%d\\n", OCCL_VERSION_MAJOR, OCCL_VERSION_MINOR);\n' + "\n".join(lines) + "\n}\n")


def types(headers: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "abi.c"), pathlib.Path(folder, "abi")
        source.write_text(program(headers), encoding="utf-8")
        subprocess.run(["gcc", "-Wall", "-Werror", source, "-o", binary], check=True)
        return subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    library, *headers = sys.argv[1:]
    version, *rest = types(headers)
    print(HEAD + "\n".join([version, *functions(library), *rest]))


if __name__ == "__main__":
    main()
