#!/usr/bin/env python3
"""Each step of a model cites the functions that take it, and there are such functions.

Behind the brace that opens a process, an inline or an indivisible step stands a comment: the names, with commas in between; or
`the program`; or `none: ` and why the runtime has nothing for it. Names of functions elsewhere in comments, as Class::function, have to exist, too.
Arguments: models, and texts in which only such names are looked at.
"""
import pathlib
import re
import sys
import unittest

OPENING = re.compile(r"(?:\binline\s+(?P<inline>\w+)\s*\([^)]*\)|\bproctype\s+(?P<process>\w+)\s*\([^)]*\)|\b(?:atomic|d_step|TOGETHER))\s*\{")
CITATION = re.compile(r"\s*/\*\s*(.*?)\s*\*/", re.S)
NAME = re.compile(r"(?:\w+::)*~?\w+")
METHOD = re.compile(r"\b([A-Z]\w*)::(~?\w+)")


def without_comments(text):
    """Comments and strings are blank; lines stay."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def body_at(text, begin):
    """What is in the braces that open at `begin`, without what is in braces there."""
    depth, shallow = 0, []
    for character in text[begin:]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            break
        if depth == 1:
            shallow.append(character)
    return "".join(shallow)


def functions_in(text):
    """{(class or None, function)}, and {(class, None)} for each class."""
    text, found = without_comments(text), set()
    for match in re.finditer(r"^[ ]*(?:template <[^;{]*>\s*)?(?:class|struct)\s+(?:alignas\(\w+\)\s+)?([\w:]+)[^;{}()]*\{", text, re.M):
        name = match.group(1).split("::")[-1]
        found.add((name, None))
        found.update((name, function) for function in re.findall(r"(~?\b\w+)\s*\(", body_at(text, match.end() - 1)))
    found.update((None, function) for function in re.findall(r"^[A-Za-z_][^\n;=(]*[\s*&](\w+)\(", text, re.M))
    return found


def citation_of(text, opening):
    """(names, None), or (None, what is wrong)."""
    comment = CITATION.match(text, opening.end())
    if not comment:
        return None, "does not say which function takes it"
    said = comment.group(1)
    if said == "the program" or re.fullmatch(r"none: \S.*", said, re.S):
        return [], None
    names = re.split(r",\s+", said)
    if not all(NAME.fullmatch(name) for name in names):
        return None, f"'{said}' is no list of functions"
    return names, None


def is_known(name, known):
    *scope, function = name.split("::")
    return (scope[-1] if scope else None, function) in known


def errors_in(text, known, is_model):
    """(number of citations, [(line, what is wrong)])."""
    wrong, cited = [], 0
    line_of = lambda position: text.count("\n", 0, position) + 1
    code = without_comments(text)
    code = re.sub(r"^init \{.*?^\}", lambda match: re.sub(r"[^\n]", " ", match.group()), code, flags=re.S | re.M)
    for opening in OPENING.finditer(code) if is_model else ():
        names, error = citation_of(text, opening)
        if error:
            wrong.append((line_of(opening.start()), error))
            continue
        cited += len(names)
        wrong += [(line_of(opening.start()), f"there is no function {name}") for name in names if not is_known(name, known)]
    for match in METHOD.finditer(text):
        scope, function = match.groups()
        if (scope, function) not in known and not (function[0].isupper() and (function, None) in known):
            wrong.append((line_of(match.start()), f"there is no function {scope}::{function}"))
        cited += not is_model
    return cited, wrong


def sources():
    for path in sorted(pathlib.Path("runtime").rglob("*")):
        if path.suffix in (".h", ".cpp", ".cu", ".cuh") and not path.name.endswith("_test.cpp"):
            yield path


class ErrorsTest(unittest.TestCase):
    KNOWN = functions_in("""
struct alignas(64) Bell {
  void ring() { look(); }
  bool isOpen() const;
};
template <class T> class Ring : Base {
  /// Not gone();
  ~Ring();
  struct Place {
    int at(int i);
  };
};
namespace {
bool look() { return other(); }
}
""")

    def errors(self, text, is_model=True):
        return [what for _, what in errors_in(text, self.KNOWN, is_model)[1]]

    def test_functions(self):
        self.assertLessEqual({("Bell", "ring"), ("Bell", "isOpen"), ("Ring", "~Ring"), ("Place", "at"), ("Ring", None), (None, "look")},
                             self.KNOWN)
        self.assertFalse({("Bell", "look"), ("Ring", "gone"), (None, "other"), (None, "ring")} & self.KNOWN)

    def test_good(self):
        self.assertEqual(self.errors("inline f(r) { /* Bell::ring, look */ atomic { /* x::Ring::~Ring */ } }\n"), [])
        self.assertEqual(self.errors("proctype F(byte r) { /* the program */ d_step { /* none: why */ } }\n"), [])
        self.assertEqual(self.errors("init {\n  atomic { run F() }\n}\n"), [])

    def test_bad(self):
        self.assertEqual(len(self.errors("inline f(r) { }")), 1)
        self.assertEqual(len(self.errors("/* Bell::ring */ atomic { skip }")), 1)
        self.assertEqual(len(self.errors("atomic { /* that is so */ }")), 1)
        self.assertEqual(len(self.errors("atomic { /* none: */ }")), 1)
        self.assertIn("there is no function ring", self.errors("TOGETHER { /* ring */ }"))
        self.assertIn("there is no function Bell::look", self.errors("d_step { /* Bell::look */ }"))
        self.assertEqual(self.errors("`Bell::ring`, `Ring::Place`, `Bell::sing`", False), ["there is no function Bell::sing"])


def main():
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(ErrorsTest))
    if not result.wasSuccessful():
        return 1
    known = set()
    for path in sources():
        known |= functions_in(path.read_text(encoding="utf-8"))
    failures, total = [], 0
    for path in map(pathlib.Path, sys.argv[1:]):
        cited, wrong = errors_in(path.read_text(encoding="utf-8"), known, path.suffix == ".pml")
        failures += [f"{path}:{line}: {what}" for line, what in wrong] + ([] if cited else [f"{path}: cites nothing"])
        total += cited
    print("\n".join(failures + [f"{total} citations"]))
    return 1 if failures or total == 0 else 0


sys.exit(main())
