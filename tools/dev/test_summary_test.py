#!/usr/bin/env python3
"""What test_summary.py says of runs that Bazel reports, also of those that were broken off."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SUMMARY = os.path.join(os.path.dirname(__file__), "test_summary.py")


def summary(label, status=None):
    id_ = {"testSummary": {"label": label}}
    return {"id": id_, "aborted": {"reason": "USER_INTERRUPTED"}} if status is None else \
        {"id": id_, "testSummary": {"overallStatus": status}}


def run(events, bazel_status):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)
        file.flush()
        done = subprocess.run([sys.executable, SUMMARY, file.name, str(bazel_status)],
                              capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


class TestSummary(unittest.TestCase):
    def test_all_passed(self):
        self.assertEqual(run([summary("//a", "PASSED"), summary("//b", "FLAKY")], 0),
                         (0, ["2 passed, 0 failed"], ""))

    def test_one_failed(self):
        self.assertEqual(run([summary("//a", "PASSED"), summary("//b", "TIMEOUT")], 3),
                         (1, ["FAILED //b: timeout", "1 passed, 1 failed"], ""))

    def test_broken_off(self):
        result = {"id": {"testResult": {"label": "//b"}}, "aborted": {"reason": "USER_INTERRUPTED"}}
        self.assertEqual(run([summary("//a", "PASSED"), result, summary("//b"), summary("//c")], 8),
                         (1, ["FAILED 2 tests were not run", "1 passed, 1 failed"], ""))

    def test_nothing_ran(self):
        self.assertEqual(run([], 1),
                         (1, ["FAILED Bazel ended with status 1", "0 passed, 1 failed"], ""))


if __name__ == "__main__":
    unittest.main()
