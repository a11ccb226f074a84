#!/usr/bin/env python3
"""Every code of an error or warning has one row in docs/ and a test that shows its text; no row is of a code that does not exist. For each
kind some test shows the whole of it: the line with caret and range, the note at the other place and the replacement, where the compiler has them."""
import collections
import os
import re
import unittest

ROOT = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
# What happens only where memory ends.
UNTESTED = {"E300"}
# Kinds whose errors have no line of a text to show, and why.
WITHOUT_LINE = {
    "E001": "the file cannot be read", "E018": "nothing was chosen", "E025": "an option", "E026": "an option",
    "E027": "a file that is written", "E028": "the whole file", "E029": "a trace, not a text", "E085": "a plan, not a text",
    "E200": "the file cannot be read", "E240": "a plan, not a text", "W240": "a plan, not a text",
    "E110": "a program in IR", "E111": "a program in IR", "E112": "a program in IR", "E113": "an option of a pass",
    "E300": "memory", "E303": "no file gives such a plan", "E309": "no file gives such a plan",
    "E350": "the file cannot be read", "E351": "bytes", "E353": "bytes", "E355": "too long a line",
}
# Kinds that have another place: the other end of a connection, the racing access, who waits, what came before.
ELSEWHERE = {"E106", "E107", "E108", "E318", "E319", "E322", "E325", "E326", "E330", "E331", "E335", "E336", "E337", "E338", "E340", "E341",
             "E342", "E343", "E345"}
HEAD = re.compile(r"^(?:[A-Z-]+: )?(?P<place>(?:<command line>|\S+):\d+:\d+: |\S+: |)(?:error|warning): (?P<text>.*) \[(?P<code>[EW]\d{3})\]$")
NOTE = re.compile(r"^(?P<place>\S+:\d+:\d+: |\S+: |)note: ")
CARET = re.compile(r"^ *\^~*$")


def files(folder, *endings):
    for path, _, names in os.walk(os.path.join(ROOT, folder), followlinks=True):
        for name in names:
            if name.endswith(endings):
                with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                    yield os.path.join(path, name), file.read()


def codes_in(folder, ending, pattern):
    return {(match if match[0] in "EW" else "E" + match)
            for _, text in files(folder, ending) for match in re.findall(pattern, text)}


def declared():
    return {
        "frontend": codes_in("compiler/frontend", ".def", r'OCCL_DIAGNOSTIC\("([EW]\d{3})"'),
        "scheduling": codes_in("compiler/passes", ".cpp", r"\b([EW]1\d\d)\]"),
        "plan": codes_in("plan", ".def", r"^OCCL_(?:PLAN|READ)_CODE\(\w+, (\d{3}),") |
                codes_in("plan", ".def", r"\nOCCL_(?:PLAN|READ)_CODE\(\w+, (\d{3}),"),
    }


def shown_by(lines, start):
    """What the error whose first line is lines[start] shows: some of line, note, fixIt, suggestion."""
    seen = {"suggestion"} if "did you mean" in lines[start] else set()
    rest = lines[start + 1:]
    if len(rest) > 1 and CARET.match(rest[1]):
        seen.add("line")
        if len(rest) > 2 and re.match(r"^ *\S", rest[2]) and not NOTE.match(rest[2]) and not HEAD.match(rest[2]) and \
                not re.match(r"^\d+ (error|warning)", rest[2]) and not rest[2].startswith("//---"):
            seen.add("fixIt")
    for i, line in enumerate(rest):
        if HEAD.match(line) or line.startswith("//---"):
            break
        note = NOTE.match(line)
        if note and note["place"] and i + 2 < len(rest) and CARET.match(rest[i + 2]):
            seen.add("note")
    return seen


def shown():
    """For each code, what its tests show."""
    seen = collections.defaultdict(set)
    for _, text in files("test", ".coll", ".test"):
        lines = text.split("\n")
        for i, line in enumerate(lines):
            head = HEAD.match(line)
            if head:
                seen[head["code"]] |= shown_by(lines, i) | {"text"}
    return seen


def names_of_codes():
    """From the enumerator of a code of the frontend to the code."""
    return {name: code for _, text in files("compiler/frontend", ".def")
            for code, name in re.findall(r'OCCL_DIAGNOSTIC\("([EW]\d{3})", (\w+)', text)}


def offered():
    """For each code of the frontend and of imports, what the compiler's statements that report it can show besides the line."""
    names, offers = names_of_codes(), collections.defaultdict(set)
    for folder in ("compiler/frontend", "compiler/interchange"):
        for path, text in files(folder, ".cpp"):
            if path.endswith("_test.cpp"):
                continue
            for function in re.split(r"\n {0,2}}\n", text):
                for statement in function.split(";\n"):
                    # What is said of an error that has a name may come later in the function.
                    name = re.search(r"Diagnostic &(\w+) =", statement)
                    said = statement + "".join(re.findall(rf"\b{name[1]}(\.\w+\()", function) if name else [])
                    for code in re.findall(r"DiagnosticCode::(\w+)", statement):
                        if code in names:
                            kinds = {"note": ".note(", "fixIt": ".fixIt(", "suggestion": "didYouMean("}
                            offers[names[code]] |= {kind for kind, call in kinds.items() if call in said}
    return offers


class CodesTest(unittest.TestCase):
    def test_documented_once(self):
        rows = collections.Counter(code for _, text in files("docs", ".md")
                                   for code in re.findall(r"^\| ([EW]\d{3}) \|", text, re.MULTILINE))
        for kind, codes in declared().items():
            for code in sorted(codes):
                self.assertEqual(rows.pop(code, 0), 1, f"rows in docs/ for {code} ({kind})")
        self.assertEqual(dict(rows), {}, "rows of codes that do not exist")

    def test_tested(self):
        mentioned = set()
        for folder in ("test", "plan", "compiler"):
            for _, text in files(folder, ".coll", ".test", ".mlir", "_test.cpp"):
                mentioned.update(re.findall(r"[\[\"]([EW]\d{3})[\]\"]", text))
        for kind, codes in declared().items():
            self.assertEqual(sorted(codes - mentioned - UNTESTED), [], f"codes without test ({kind})")

    def test_line_with_caret(self):
        seen = shown()
        codes = set().union(*declared().values())
        without = {code for code in codes if "line" not in seen[code]}
        self.assertEqual(sorted(without), sorted(WITHOUT_LINE), "kinds of which no test shows the line with its caret")

    def test_notes_and_replacements(self):
        seen = shown()
        offers = offered()
        for code in ELSEWHERE:
            offers[code].add("note")
        lacking = [(code, kind) for code, kinds in sorted(offers.items()) for kind in sorted(kinds - seen[code])]
        self.assertEqual(lacking, [], "what the compiler shows and no test does")

    def test_many_kinds(self):
        codes = declared()
        semantic = {code for code in codes["frontend"] if "E010" <= code < "E200"}
        imports = {code for code in codes["frontend"] if "E200" <= code < "E300"}
        for kind, of_kind, least in (("semantic", semantic, 20), ("scheduling", codes["scheduling"], 10),
                                     ("plan", codes["plan"], 15), ("import", imports, 10)):
            self.assertGreaterEqual(len(of_kind), least, kind)
            self.assertGreaterEqual(len(of_kind - set(WITHOUT_LINE)), least, f"{kind}, shown with their lines")


if __name__ == "__main__":
    unittest.main()
