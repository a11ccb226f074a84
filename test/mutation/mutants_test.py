#!/usr/bin/env python3
"""Every mutant still fits the sources, and a bad entry is an error."""
import os
import tempfile
import unittest

from mutants import MutantError, mutate, mutated_files, read_mutants

HERE = os.path.dirname(os.path.abspath(__file__))
ENTRY = "[one]\nwhat = w\nfile = f\nfind = a < b\nwith = BROKEN || a < b\ntests = //x //y\n"


class MutantsTest(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "x.mutants"), "w", encoding="utf-8") as file:
                file.write(text)
            return read_mutants(folder)

    def test_all_fit(self):
        root = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
        mutants = read_mutants(HERE)
        self.assertGreater(len(mutants), 0)
        for path, text in mutated_files(root, mutants):
            self.assertIn("isChosenMutant(\"", text, path)

    def test_replaces(self):
        text = mutate("if (a < b)", self.read(ENTRY))
        self.assertIn('if (([] { static const bool is = isChosenMutant("one"); return is; }()) || a < b)', text)

    def test_refuses(self):
        for text in (ENTRY + ENTRY.replace("w\n", "v\n").replace("[one]", "[two]").replace("BROKEN", "true"),
                     ENTRY.replace("what = w\n", "")):
            with self.assertRaises(MutantError):
                self.read(text)
        for text in ("", "a < b; a < b"):
            with self.assertRaises(MutantError):
                mutate(text, self.read(ENTRY))


if __name__ == "__main__":
    unittest.main()
