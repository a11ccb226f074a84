#!/usr/bin/env python3
"""What pages of docs/ and CONTRIBUTING.md cite is there: files, and members of classes and of enumerations. What
CONTRIBUTING.md lists for a transport, each transport has.

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


KINDS = re.compile(r"constexpr Kind kKinds\[\] = \{\n(.*?)^\};", re.M | re.S)
KIND = re.compile(r"^    \{(\"?\w+\"?), .*?(\w+Transport)\b", re.M)
CONSTANT = re.compile(r'constexpr std::string_view (k\w+) = "(\w+)";')


def transports_in(text):
    """{name in OCCL_NET: the function that makes it}, of choose_transport.cpp."""
    constants, rows = dict(CONSTANT.findall(text)), KINDS.search(text)
    return {constants.get(name, name.strip('"')): function for name, function in KIND.findall(rows.group(1) if rows else "")}


def lacks_of_transport(name, function, folders, pages):
    """What a transport does not have. `folders`: {folder below runtime/net/transport: {file: text}}; `pages`: {page: text}."""
    owners = [folder for folder, files in folders.items()
              if any(path.endswith("_attempt.h") and f"{function}(" in text for path, text in files.items())]  # fmt: skip
    if len(owners) != 1:
        return [f"one folder with an _attempt.h that declares {function}"]
    texts, lacks = folders[owners[0]], []
    code = "\n".join(text for path, text in texts.items() if path.endswith((".h", ".cpp")))
    lacks += [f"a class that is a {base}" for base in ("TransportKind", "Attempt") if f"public {base}" not in code]
    if not any(path.endswith("_test.cpp") and "testing/conformance.h" in text and "INSTANTIATE_TEST_SUITE_P" in text for path, text in texts.items()):
        lacks.append("a test that instantiates the suite of testing/conformance.h")
    chapter = re.search(r"^## Which transport\n(.*?)^## ", pages["docs/machines.md"], re.M | re.S)
    if not chapter or f"`{name}`" not in chapter.group(1):
        lacks.append("its name under 'Which transport' in docs/machines.md")
    row = re.search(r"^\| `OCCL_NET` \|.*", pages["docs/reference/environment.md"], re.M)
    if not row or f"`{name}`" not in row.group():
        lacks.append("its name at OCCL_NET in docs/reference/environment.md")
    return lacks


def transport_failures():
    transports = transports_in((ROOT / "runtime/net/choose/choose_transport.cpp").read_text(encoding="utf-8"))
    folders = {folder.name: {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}
               for folder in (ROOT / "runtime/net/transport").iterdir() if folder.is_dir()}  # fmt: skip
    pages = {page: (ROOT / page).read_text(encoding="utf-8") for page in ("docs/machines.md", "docs/reference/environment.md")}
    failures = [f"transport {name} lacks {lack}" for name, function in transports.items() for lack in lacks_of_transport(name, function, folders, pages)]
    unknown = [folder for folder, texts in folders.items() if any(path.endswith("_attempt.h") for path in texts)]
    if len(unknown) != len(transports) or not transports:
        failures.append(f"runtime/net/transport has attempts in {sorted(unknown)}, choose_transport.cpp the transports {sorted(transports)}")
    entry = re.search(r"^\*\*A transport\*\*(.*?)\n\n", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M | re.S)
    failures += [f"CONTRIBUTING.md does not name {word} for a transport" for word in
                 ("attempt.h", "transport.h", "conformance.h", "kKinds", "choose_transport.cpp", "docs/machines.md", "docs/reference/environment.md")
                 if not entry or word not in entry.group(1)]  # fmt: skip
    return failures


class Transports(unittest.TestCase):
    CHOICE = 'constexpr std::string_view kPost = "post";\nconstexpr Kind kKinds[] = {\n    {kPost, true, postTransport},\n' \
             '    {"tcp", false, [](std::string) { return tcpTransport(); }},\n};\n'  # fmt: skip
    PAGES = {"docs/machines.md": "## Which transport\n`post` or `tcp`\n\n## Next\n", "docs/reference/environment.md": "| `OCCL_NET` | `post` |\n"}
    POST = {"post_attempt.h": "postTransport();", "post.cpp": "class A : public TransportKind {}; class B : public Attempt {};",
            "post_test.cpp": '#include "testing/conformance.h"\nINSTANTIATE_TEST_SUITE_P'}  # fmt: skip

    def test_rows(self):
        self.assertEqual(transports_in(self.CHOICE), {"post": "postTransport", "tcp": "tcpTransport"})

    def test_whole(self):
        self.assertEqual(lacks_of_transport("post", "postTransport", {"post": self.POST}, self.PAGES), [])

    def test_lacking(self):
        self.assertEqual(len(lacks_of_transport("tcp", "tcpTransport", {"post": self.POST}, self.PAGES)), 1)
        for path in ("post.cpp", "post_test.cpp"):
            self.assertTrue(lacks_of_transport("post", "postTransport", {"post": {**self.POST, path: ""}}, self.PAGES))
        for page in self.PAGES:
            self.assertTrue(lacks_of_transport("post", "postTransport", {"post": self.POST}, {**self.PAGES, page: ""}))


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
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
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
    failures += transport_failures()
    print("\n".join(failures + [f"{looked} citations"]))
    return 1 if failures or looked < 100 or not result.wasSuccessful() else 0


sys.exit(main())
