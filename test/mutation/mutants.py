"""The mutants: what they break in which file, which are left out and why, and the sources with all of them in.

Most are found in the sources of PATTERNS, see conditions.py. Those that put a particular mistake back are in *.mutants:

    [any-owner]
    what = two thread blocks may own an end
    file = compiler/passes/blocks/ThreadBlocks.cpp
    find = blockOf(a) >= 0
    with = (!BROKEN && @)

`find` occurs in `file` exactly once, @ stands for it, and BROKEN is true while this mutant is the chosen one. With

    tests = //runtime/base:process_identity_test

these have to find it, and no others are tried; `<label>=<filter>` is some of a test. What breaks nothing that a test could see is left out, by *.leftout:

    [searches]
    why    = a search ends later: the same verdict
    file   = plan/verify/checks/happens_before.cpp
    breaks =
        false: seen[next]

with a line for each, as `mutate.py --list` prints it; `#2` is the second of the same text.
"""
import configparser
import fnmatch
import glob
import os
import re
from collections import Counter, namedtuple

from conditions import breaks_of

# `name` chooses the mutant; `before` and `after` go around [begin, end) of its file; `tests`: labels, or none for the usual ones.
Mutant = namedtuple("Mutant", "name what file begin end before after why_left_out is_mistake tests")

# What the compiler rewrites, schedules and synchronizes by, and what the verifier proves; not what only explains.
PATTERNS = ["compiler/passes/*.cpp", "compiler/passes/*/*.cpp", "compiler/analysis/*.cpp", "compiler/analysis/RanksInOrder.h", "compiler/export/PlanExport.cpp",
            "plan/transform/remote_orders.cpp", "plan/machine/*.h", "plan/verify/checks/*.cpp", "plan/verify/verifier.cpp", "plan/collectives/*.cpp",
            "plan/transform/postcondition.cpp"]
OTHERS = ["*_test.cpp", "compiler/analysis/ProgramIO.cpp", "plan/verify/checks/explain.cpp", "plan/verify/checks/finding.cpp"]
# What chooses among right schedules: the verifier refuses what is wrong, bench/schedules measures what is bad.
OTHERS += [f"compiler/passes/{name}.cpp" for name in ("InstAssignThreadBlocks", "InstSchedule", "blocks/Channels", "blocks/ThreadBlocks")]
OTHERS += ["compiler/analysis/ListScheduler.cpp", "compiler/analysis/StepGraph.cpp"]
# What is broken by hand, in daemon/*.mutants and gpu/*.mutants.
OTHERS += ["runtime/*", "plan/model/aliasing.*"]
# And in names.mutants and view.mutants.
OTHERS += ["compiler/frontend/*", "compiler/view/*"]

# Chosen by an environment variable, so that all mutants are built at once; another names a file that learns which were asked for.
PRELUDE = """#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>
[[maybe_unused]] static bool {asks}(unsigned number) {{
  static const unsigned chosen = [] {{
    const char *name = std::getenv("OCCL_MUTANT");
    size_t length = std::strlen("{file}:");
    return name && std::strncmp(name, "{file}:", length) == 0 ? std::atoi(name + length) : -1u;
  }}();
  static const char *trace = std::getenv("OCCL_MUTANT_TRACE");
  static std::atomic<bool> seen[{count}];
  if (trace && !seen[number].exchange(true)) {{
    std::string line = "{file}:" + std::to_string(number) + "\\n";
    int file = open(trace, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
      seen[number] = false; // tests take descriptors away
    else if (write(file, line.data(), line.size()) < 0)
      std::abort();
    close(file);
  }}
  return number == chosen;
}}
#line 1
"""


class MutantError(Exception):
    pass


def _sections(folder, suffix, keys):
    """Yields (name, entry) of all files with the suffix."""
    for path in sorted(glob.glob(os.path.join(folder, "*" + suffix))):
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
        parser.read(path, encoding="utf-8")
        for name in parser.sections():
            missing = [key for key in keys if key not in parser[name]]
            if missing:
                raise MutantError(f"{path}: {name} lacks {', '.join(missing)}")
            yield name, parser[name]


def read_written(folder):
    """The mutants of *.mutants: {file: [(name, what, find, with, tests)]}."""
    written = {}
    for name, entry in _sections(folder, ".mutants", ("what", "file", "find", "with")):
        if "BROKEN" not in entry["with"] or entry["with"].count("@") != 1:
            raise MutantError(f"mutant {name}: 'with' has to have BROKEN, and @ once")
        written.setdefault(entry["file"], []).append(
            (name, entry["what"], entry["find"], entry["with"], tuple(entry.get("tests", "").split())))
    return written


def read_left_out(folder):
    """What *.leftout says: {(file, what): why}."""
    reasons = {}
    for _, entry in _sections(folder, ".leftout", ("why", "file", "breaks")):
        for line in entry["breaks"].split("\n"):
            if line and not line.startswith(("true: ", "false: ")):
                raise MutantError(f"'{line}' is not '<value>: <condition>'")
            if line:
                reasons[entry["file"], line] = entry["why"].replace("\n", " ")
    return reasons


def mutants_of(file, text, written, left_out):
    """The mutants of a file; what `left_out` names is taken from there."""
    found = []
    for name, what, find, replacement, tests in written:
        if text.count(find) != 1:
            raise MutantError(f"mutant {name}: {file} has {text.count(find)} times: {find}")
        before, after = replacement.split("@")
        begin = text.index(find)
        found.append((begin, begin + len(find), f"{name}: {what}", before, after, None, True, tests))
    seen = Counter()
    for broken in breaks_of(text) if is_broken(file) else ():
        what = f"{str(broken.value).lower()}: {broken.text}"
        seen[what] += 1
        if seen[what] > 1:
            what += f" #{seen[what]}"
        why = left_out.pop((file, what), None)
        if broken.name:
            before, after = "", f"; {broken.name} && !BROKEN"
        else:
            before, after = ("(BROKEN || (" if broken.value else "(!BROKEN && ("), "))"
        found.append((broken.begin, broken.end, what, before, after, why, False, ()))
    found.sort(key=lambda mutant: (mutant[0], -mutant[1]))
    asks = asking_function(file)
    return [Mutant(f"{file}:{number}", what, file, begin, end, before.replace("BROKEN", f"{asks}({number})"),
                   after.replace("BROKEN", f"{asks}({number})"), *rest)
            for number, (begin, end, what, before, after, *rest) in enumerate(found)]


def asking_function(file):
    """A source and the headers that it includes may all have mutants."""
    return "isMutant_" + re.sub(r"\W", "_", file)


def mutate(text, mutants):
    """The text of a file with all its mutants, which lie within each other or apart."""
    pieces, at, open_ones = [], 0, []

    def close(position):
        nonlocal at
        while open_ones and open_ones[-1].end <= position:
            mutant = open_ones.pop()
            pieces.extend((text[at:mutant.end], mutant.after))
            at = mutant.end
    for mutant in mutants:
        close(mutant.begin)
        if open_ones and open_ones[-1].end < mutant.end:
            raise MutantError(f"mutants {open_ones[-1].name} and {mutant.name} overlap in part")
        pieces.extend((text[at:mutant.begin], mutant.before))
        at = mutant.begin
        open_ones.append(mutant)
    close(len(text))
    prelude = PRELUDE.format(file=mutants[0].file, count=len(mutants), asks=asking_function(mutants[0].file)) if mutants else ""
    return prelude + "".join(pieces) + text[at:]


def is_broken(file):
    """Whether all conditions of a file are broken."""
    return not any(fnmatch.fnmatch(file, other) for other in OTHERS)


def source_files(root):
    files = {os.path.relpath(path, root) for pattern in PATTERNS for path in glob.glob(os.path.join(root, pattern))}
    return {file for file in files if is_broken(file)}


def read_all(root, folder, sources=None):
    """{file: (text, mutants)} of these sources and of what *.mutants name; an error if an entry fits nothing."""
    written, left_out = read_written(folder), read_left_out(folder)
    result = {}
    for file in sorted((source_files(root) if sources is None else sources) | set(written)):
        with open(os.path.join(root, file), encoding="utf-8") as source:
            text = source.read()
        result[file] = (text, mutants_of(file, text, written.get(file, []), left_out))
    if left_out:
        raise MutantError("left out, but there is no such condition: " + "; ".join(map(" ".join, left_out)))
    return result
