#!/usr/bin/env python3
"""Which conditions are found, what becomes of a source, that a bad entry is an error, and that all entries fit the sources."""
import os
import tempfile
import unittest

from conditions import breaks_of
from mutants import MutantError, mutants_of, mutate, read_all, read_left_out, read_written
from runner import root_path

HERE = os.path.dirname(os.path.abspath(__file__))
WRITTEN = "[one]\nwhat = w\nfile = f\nfind = a < b\nwith = (BROKEN || @)\n"
LEFT_OUT = "[one]\nwhy = w\nfile = f\nbreaks =\n    true: a < b\n"


def found(text):
    return {(broken.text, broken.value) for broken in breaks_of(text)}


class ConditionsTest(unittest.TestCase):
    def test_if(self):
        self.assertEqual(found("if (x < 1) y();"), {("x < 1", False), ("x < 1", True)})

    def test_parts(self):
        self.assertEqual(found("if (a || b(c))"), {("a", False), ("b(c)", False), ("a || b(c)", True)})
        self.assertEqual(found("if (a && b)"), {("a", True), ("b", True), ("a && b", False)})

    def test_nested(self):
        self.assertEqual(found("if (a && (b || c))"), {("a", True), ("(b || c)", True), ("b", False), ("c", False), ("b || c", True),
                                                       ("a && (b || c)", False)})

    def test_declaration(self):
        self.assertEqual(found("if (const T *x = find(a == b))"), {("const T *x = find(a == b)", False)})
        self.assertEqual(found("if (T x = f(); x.ok)"), {("x.ok", False), ("x.ok", True)})

    def test_values(self):
        self.assertEqual(found("return a < b;"), {("a < b", False), ("a < b", True)})
        self.assertEqual(found("return f([&](int i) { return i == 1; });"), {("i == 1", False), ("i == 1", True)})
        self.assertEqual(found("bool live = false; live |= x.y;"), {("x.y", False), ("x.y", True)})
        self.assertEqual(found("return a << b; return a + b;"), set())

    def test_choice(self):
        self.assertEqual(found("int x = a == b ? 1 : 2;"), {("a == b", False), ("a == b", True)})

    def test_text_is_no_code(self):
        self.assertEqual(found('// if (a)\nf("if (b)"); #\n#if (c)\n'), set())


class MutateTest(unittest.TestCase):
    def test_all_parts(self):
        text = "if (a || b)"
        mutated = mutate(text, mutants_of("f", text, [], {}))
        self.assertTrue(mutated.endswith("if ((isMutant_f(0) || ((!isMutant_f(1) && (a)) || (!isMutant_f(2) && (b)))))"), mutated)

    def test_declaration(self):
        text = "if (T x = f())"
        self.assertTrue(mutate(text, mutants_of("f", text, [], {})).endswith("if (T x = f(); x && !isMutant_f(0))"))

    def test_same_text(self):
        self.assertEqual([mutant.what for mutant in mutants_of("f", "if (T a = f()) if (T a = f())", [], {})],
                         ["false: T a = f()", "false: T a = f() #2"])

    def test_written_and_left_out(self):
        text = "if (a < b)"
        mutants = mutants_of("f", text, [("one", "w", "a < b", "(BROKEN || @)", ())], {("f", "true: a < b"): "why"})
        self.assertEqual([mutant.why_left_out for mutant in mutants], [None, None, "why"])
        self.assertIn("a < b", mutate(text, mutants))


class EntriesTest(unittest.TestCase):
    def read(self, read, name, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            return read(folder)

    def test_reads(self):
        self.assertEqual(self.read(read_written, "x.mutants", WRITTEN), {"f": [("one", "w", "a < b", "(BROKEN || @)", ())]})
        self.assertEqual(self.read(read_left_out, "x.leftout", LEFT_OUT), {("f", "true: a < b"): "w"})

    def test_refuses(self):
        for name, read, text in (("x.mutants", read_written, WRITTEN.replace("BROKEN", "true")),
                                 ("x.mutants", read_written, WRITTEN.replace("@", "a")),
                                 ("x.mutants", read_written, WRITTEN.replace("what = w\n", "")),
                                 ("x.leftout", read_left_out, LEFT_OUT.replace("true: ", "")),
                                 ("x.leftout", read_left_out, LEFT_OUT.replace("why = w\n", ""))):
            with self.assertRaises(MutantError):
                self.read(read, name, text)
        for text in ("", "a < b; a < b"):
            with self.assertRaises(MutantError):
                mutants_of("f", text, [("one", "w", "a < b", "(BROKEN || @)", ())], {})

    def test_all_fit(self):
        root = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
        files = read_all(root, HERE)
        self.assertIn("plan/verify/checks/races.cpp", files)
        daemon = read_all(root, os.path.join(HERE, "daemon"), set())
        self.assertIn("runtime/sync/doorbell.h", daemon)
        gpu = read_all(root, os.path.join(HERE, "gpu"), set())
        self.assertIn("runtime/cuda/calls/ordered_calls.cpp", gpu)
        for file, (text, mutants) in (*files.items(), *daemon.items(), *gpu.items()):
            self.assertGreater(len(mutate(text, mutants)), len(text), file)
        for file, (_, mutants) in gpu.items():
            self.assertTrue(file.endswith(".cpp"), f"{file}: device code may include it")
            for mutant in mutants:
                self.assertTrue(mutant.tests, mutant.what)


class RunnerTest(unittest.TestCase):
    def test_root_path(self):
        for label, path in ((":a", "p/a"), ("//a/b:c", "a/b/c"), ("//a/b", "a/b/b"), ("//:a/b.py", "a/b.py")):
            self.assertEqual(root_path("p", label), path)


if __name__ == "__main__":
    unittest.main()
