#!/usr/bin/env python3
"""Sums up a Bazel test run: test_summary.py <build event file> <Bazel's exit status>.

Counts test cases where a test reports them (googletest), else one a target. What did not build, or did not run, has
failed. The last line is "N passed, N failed"; the exit status is 0 only if something passed and nothing failed.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

BAZEL_TESTS_FAILED = 3


def readEvents(path):
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def countCases(reportUri):
    """(passed, failures as names, skipped) of a test.xml, or None if it has no cases."""
    try:
        root = ElementTree.parse(urllib.parse.urlparse(reportUri).path)
    except (OSError, ElementTree.ParseError):
        return None
    passed, failures, skipped = 0, [], 0
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{case.get('classname', '')}.{case.get('name', '')}".strip("."))
        elif case.find("skipped") is not None or case.get("result") == "suppressed":
            skipped += 1
        else:
            passed += 1
    return (passed, failures, skipped) if passed or failures or skipped else None


def main():
    path, bazelStatus = sys.argv[1], int(sys.argv[2])
    reports, statuses, broken, left = {}, {}, [], 0
    for event in readEvents(path):
        kind = event["id"]
        if "testResult" in kind:
            for output in event.get("testResult", {}).get("testActionOutput", []):
                if output["name"] == "test.xml":
                    reports[kind["testResult"]["label"]] = output["uri"]
        elif "testSummary" in kind and "testSummary" not in event:
            left += 1  # the run was broken off
        elif "testSummary" in kind:
            statuses[kind["testSummary"]["label"]] = event["testSummary"]["overallStatus"]
        elif "targetCompleted" in kind and not event.get("completed", {}).get("success"):
            broken.append(kind["targetCompleted"]["label"])

    passed, skipped, failures = 0, 0, [f"{label}: not built" for label in broken]
    for label, status in sorted(statuses.items()):
        cases = countCases(reports.get(label, ""))
        if status in ("PASSED", "FLAKY"):
            casesPassed, _, casesSkipped = cases or (1, [], 0)
            passed += casesPassed
            skipped += casesSkipped
        elif label not in broken:
            casesPassed, names, casesSkipped = cases or (0, [], 0)
            passed += casesPassed
            skipped += casesSkipped
            failures += [f"{label}: {name}" for name in names] or [f"{label}: {status.lower()}"]
    if left:
        failures.append(f"{left} tests were not run")
    if bazelStatus not in (0, BAZEL_TESTS_FAILED) and not failures:
        failures.append(f"Bazel ended with status {bazelStatus}")

    for failure in failures:
        print(f"FAILED {failure}")
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(0 if passed and not failures and bazelStatus == 0 else 1)


main()
