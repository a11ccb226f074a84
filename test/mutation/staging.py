"""Tests with mutants in a folder that another machine runs without build tools: `mutate.py --stage FOLDER` makes it, FOLDER/mutate.py runs
them there, with options as here."""
import json
import os
import shutil
import subprocess

from mutants import Mutant
from runner import Test

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = "staged.json"
SCRIPTS = ("conditions.py", "mutants.py", "mutate.py", "runner.py", "staging.py")


def is_staged():
    return os.path.exists(os.path.join(HERE, LIST))


class _Copies:
    """Each file once, however many names it has; programs without their symbols."""

    def __init__(self):
        self.copies = {}

    def copy(self, source, copy):
        source = os.path.realpath(source)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        if source in self.copies:
            os.link(self.copies[source], copy)
            return
        shutil.copy2(source, copy)
        self.copies[source] = copy
        with open(copy, "rb") as file:
            is_program = file.read(4) == b"\x7fELF"
        if is_program:
            os.chmod(copy, 0o755)
            subprocess.run(["strip", copy], check=True)

    def copy_tree(self, source, copy):
        for folder, _, names in os.walk(source, followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.exists(path):
                    self.copy(path, os.path.join(copy, os.path.relpath(path, source)))


def stage(folder, mutants, tests):
    if os.path.isdir(folder):
        shutil.rmtree(folder)
    os.makedirs(folder)
    copies = _Copies()
    for test in {test.label: test for test in tests}.values():
        path = os.path.join(folder, test.path)
        copies.copy(test.command[0], path)
        copies.copy_tree(os.path.join(test.runfiles, "occl"), os.path.join(path + ".runfiles", "occl"))
    for name in SCRIPTS:
        shutil.copy2(os.path.join(HERE, name), folder)
    with open(os.path.join(folder, LIST), "w", encoding="utf-8") as file:
        json.dump({"mutants": mutants, "tests": [(test.name, test.args, test.is_usual) for test in tests]}, file, indent=1)


def staged():
    """The mutants, and the tests that this folder has."""
    with open(os.path.join(HERE, LIST), encoding="utf-8") as file:
        read = json.load(file)
    return [Mutant(*mutant) for mutant in read["mutants"]], [Test(HERE, *test) for test in read["tests"]]
