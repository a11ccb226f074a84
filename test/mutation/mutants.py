"""Mutants: single conditions of the sources, broken. Read from *.mutants files beside this one.

An entry is

    [fuse-one-reader]
    what  = 1 (copies): nobody else reads
    file  = compiler/passes/FusionRules.cpp
    find  = if (readers.size() != 1)
    with  = if (!BROKEN && readers.size() != 1)
    tests = //test/passes/... //test/random/...

`find` occurs in `file` exactly once; BROKEN is true while this mutant is the chosen one. `env`, optional, is set for the tests.
"""
import configparser
import glob
import os
from collections import namedtuple

Mutant = namedtuple("Mutant", "name what file find replacement tests env")

# Chosen by an environment variable, so that all mutants are built at once.
PRELUDE = """#include <cstdlib>
#include <string_view>
[[maybe_unused]] static bool isChosenMutant(const char *name) {
  const char *chosen = std::getenv("OCCL_MUTANT");
  return chosen && std::string_view(chosen) == name;
}
#line 1
"""


class MutantError(Exception):
    pass


def read_mutants(folder):
    mutants, names = [], set()
    for path in sorted(glob.glob(os.path.join(folder, "*.mutants"))):
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",),
                                           strict=True)
        parser.read(path, encoding="utf-8")
        for name in parser.sections():
            entry = parser[name]
            if name in names:
                raise MutantError(f"{path}: mutant {name} occurs twice")
            names.add(name)
            missing = [key for key in ("what", "file", "find", "with", "tests") if key not in entry]
            if missing:
                raise MutantError(f"{path}: mutant {name} lacks {', '.join(missing)}")
            if "BROKEN" not in entry["with"]:
                raise MutantError(f"{path}: mutant {name} is never broken: 'with' lacks BROKEN")
            env = dict(pair.split("=", 1) for pair in entry.get("env", "").split())
            mutants.append(Mutant(name, entry["what"], entry["file"], entry["find"], entry["with"],
                                  entry["tests"].split(), env))
    return mutants


def chosen(name):
    """An expression that is true in the run of that mutant; it looks once."""
    return f'([] {{ static const bool is = isChosenMutant("{name}"); return is; }}())'


def mutate(text, mutants):
    """The text of a file with all its mutants."""
    for mutant in mutants:
        count = text.count(mutant.find)
        if count != 1:
            raise MutantError(f"mutant {mutant.name}: {mutant.file} has {count} times: {mutant.find}")
        text = text.replace(mutant.find, mutant.replacement.replace("BROKEN", chosen(mutant.name)))
    return PRELUDE + text


def mutated_files(root, mutants):
    """Yields (path, text) for each file that has mutants."""
    for path in sorted({mutant.file for mutant in mutants}):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            yield path, mutate(file.read(), [mutant for mutant in mutants if mutant.file == path])
