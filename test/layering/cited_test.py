#!/usr/bin/env python3
"""What pages of docs/ and CONTRIBUTING.md cite is there: files, and members of classes and of enumerations.

Looked at is what stands alone in backticks and has one of the forms `folder/file.ext`, `file.*`, `file.{h,cpp}`, and `Class::member`. A file exists if one of the tree has that end
of a path; a member, if the definition of a class of that name has the word. Blocks of code and
docs/decisions, which are about their time, are not looked at."""

import itertools
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(os.path.realpath(__file__)).parents[2]
FOLDERS = ("algorithms", "bench", "build_defs", "compiler", "docs", "editors", "examples", "nccl", "packaging", "plan", "python", "runtime",
           "support", "test", "third_party", "tools", "topologies")  # fmt: skip

# What is no file of the tree, and why.
EXEMPT = {
    "mine.coll": "the reader's own",
    "file.coll": "the reader's own",
    "by_size.0-65535.plan.json": "made by occlc",
    "by_size.65536-max.plan.json": "made by occlc",
    "x_test.cpp": "any test",
    "x.cpp": "any file",
    "DIR/run.sh": "made by test/gpu/stage.sh",
}

FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w*][\w./*-]*\.(?:h|hpp|cpp|cu|cuh|pml|py|sh|bzl|def|td|coll|json|md|tsv|\*|\{\w+(?:,\w+)*\})")
MEMBER = re.compile(r"(?:\w+::)*([A-Z]\w*)::(~?\w+)(?:\(\))?")
TYPE = re.compile(r"\b(?:class|struct|enum(?: class)?)\s+(?:alignas\(\w+\)\s+)?([\w:]+)[^;{}()=<>]*\{")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
BRACE = re.compile(r"[{}]")


def members_in(text):
    """(type, word) for each word in the definition of a type."""
    text, found = COMMENT.sub(" ", text), set()
    for match in TYPE.finditer(text):
        depth, end = 1, len(text)
        for brace in BRACE.finditer(text, match.end()):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                end = brace.start()
                break
        name = match.group(1).split("::")[-1]
        found.update((name, word) for word in re.findall(r"~?\w+", text[match.end() : end]))
    return found


def expanded(path):
    """file.{h,cpp} is both."""
    choice = re.fullmatch(r"(.*)\{(.*)\}", path)
    return [choice.group(1) + end for end in choice.group(2).split(",")] if choice else [path]


def is_file(path, files):
    end = re.compile("/" + "[^/]*".join(map(re.escape, path.split("*"))) + "$")
    return any(map(end.search, files))


def errors_in(text, files, members):
    """[(line, what is not there)]; how many were looked at."""
    wrong, looked = [], 0
    text = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for span in SPAN.finditer(text):
        said, line = span.group(1), text.count("\n", 0, span.start()) + 1
        if member := MEMBER.fullmatch(said):
            looked += 1
            if member.groups() not in members:
                wrong.append((line, said))
        elif FILE.fullmatch(said) and said not in EXEMPT:
            looked += 1
            wrong += [(line, path) for path in expanded(said) if not is_file(path, files)]
    return wrong, looked


class Citations(unittest.TestCase):
    FILES = ["/runtime/rank/daemon.cpp", "/runtime/rank/daemon.h", "/test/a/b.pml"]
    MEMBERS = members_in("struct Bell { /* gone */ void ring() { if (x) { look(); } } int word; };\nenum class Kind : int { One };\nint after;")

    def wrong(self, text):
        return [said for _, said in errors_in(text, self.FILES, self.MEMBERS)[0]]

    def test_there(self):
        self.assertEqual(self.wrong("`daemon.cpp`, `rank/daemon.{h,cpp}`, `runtime/rank/daemon.*`, `*.pml`, `Bell::ring`, `x::Bell::word`, `Kind::One`"), [])
        self.assertEqual(self.wrong("`ring`, `a.b.c()`\n```\n`gone.h`\n```\n"), [])

    def test_not_there(self):
        self.assertEqual(self.wrong("`gone.h`, `run/daemon.cpp`, `aemon.cpp`"), ["gone.h", "run/daemon.cpp", "aemon.cpp"])
        self.assertEqual(self.wrong("`rank/daemon.{h,cu}`"), ["rank/daemon.cu"])
        self.assertEqual(self.wrong("`Bell::gone`, `Bell::after`, `Gone::ring()`"), ["Bell::gone", "Bell::after", "Gone::ring()"])


def main():
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Citations))
    paths = list(itertools.chain(ROOT.glob("*.*"), *((ROOT / folder).rglob("*") for folder in FOLDERS)))
    files = ["/" + path.relative_to(ROOT).as_posix() for path in paths if path.is_file()]
    members = set()
    for path in paths:
        if path.suffix in (".h", ".hpp", ".cpp", ".cu", ".cuh"):
            members |= members_in(path.read_text(encoding="utf-8", errors="replace"))
    failures, looked, pages = [], 0, ""
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        pages += text
        wrong, count = errors_in(text, files, members)
        failures += [f"{page.relative_to(ROOT)}:{line}: there is no {said}" for line, said in wrong]
        looked += count
    failures += [f"{__file__}: no page has {said} any more: not to be exempt" for said in EXEMPT if f"`{said}`" not in pages]
    print("\n".join(failures + [f"{looked} citations"]))
    return 1 if failures or looked < 100 or not result.wasSuccessful() else 0


sys.exit(main())
