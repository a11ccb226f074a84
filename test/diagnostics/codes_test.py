#!/usr/bin/env python3
"""Every code of an error or warning has one row in docs/ and a test that shows its text; no row is of a code that does not exist."""
import collections
import os
import re
import unittest

ROOT = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
# What happens only where memory ends.
UNTESTED = {"E300"}


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
        "scheduling": codes_in("compiler/passes", ".cpp", r"\b(E1\d\d)\]"),
        "plan": codes_in("plan", ".def", r"^OCCL_(?:PLAN|READ)_CODE\(\w+, (\d{3}),") |
                codes_in("plan", ".def", r"\nOCCL_(?:PLAN|READ)_CODE\(\w+, (\d{3}),"),
    }


class CodesTest(unittest.TestCase):
    def test_documented_once(self):
        rows = collections.Counter(code for _, text in files("docs", ".md")
                                   for code in re.findall(r"^\| ([EW]\d{3}) \|", text, re.MULTILINE))
        for kind, codes in declared().items():
            for code in sorted(codes):
                self.assertEqual(rows.pop(code, 0), 1, f"rows in docs/ for {code} ({kind})")
        self.assertEqual(dict(rows), {}, "rows of codes that do not exist")

    def test_tested(self):
        shown = set()
        for folder in ("test", "plan", "compiler"):
            for _, text in files(folder, ".coll", ".test", ".mlir", "_test.cpp"):
                shown.update(re.findall(r"[\[\"]([EW]\d{3})[\]\"]", text))
        for kind, codes in declared().items():
            self.assertEqual(sorted(codes - shown - UNTESTED), [], f"codes without test ({kind})")

    def test_many_kinds(self):
        codes = declared()
        semantic = {code for code in codes["frontend"] if "E010" <= code < "E200"}
        imports = {code for code in codes["frontend"] if "E200" <= code < "E300"}
        for kind, of_kind, least in (("semantic", semantic, 20), ("scheduling", codes["scheduling"], 10),
                                     ("plan", codes["plan"], 15), ("import", imports, 10)):
            self.assertGreaterEqual(len(of_kind), least, kind)


if __name__ == "__main__":
    unittest.main()
