#!/usr/bin/env python3
"""Words that only this project used do not come back, once the sources say it in the field's.

Fails on a word of the list in compiler, plan, tools or test, and names the one that readers know; docs_test.py has a list of its own for docs. And on
a test whose name begins with What or Who: names say subject, condition and result. Looks at the tree of the workspace, as a list of packages would
miss those that come later.
"""
import os
import pathlib
import re
import sys

EVERYWHERE = ("compiler", "plan", "tools", "test")
# Where the runtime's own words are not needed; tests of the runtime have those of its classes.
BESIDE_RUNTIME = ("compiler", "plan", "tools")

# Of whole words: a pattern, what to say instead, and in which folders.
GONE = [
    (r"[Tt]actics?|OCCL_TACTIC\w*", "ScheduleOptions, schedule options", EVERYWHERE),
    (r"ChoiceOptions|isChoiceAsked", "AutotuneOptions, isAutotuningAsked", EVERYWHERE),
    (r"PlanAssembler|plan assembler", "PlanParser", EVERYWHERE),
    (r"\w*Emitter", "what it is: a sink, a builder, a writer, a lowering", EVERYWHERE),
    (r"PromiseRequest|instantiatePromise|Promise\.(h|cpp)", "PostconditionRequest, instantiatePostcondition", EVERYWHERE),
    # Not folders; not the option fold-arrivals, whose name is part of the hash of plans.
    (r"(?<!-)[Ff]old(s|ed|ing)?(?!-arrivals)|[a-z]\w*Fold(?!er)\w*", "reduce, reduction", EVERYWHERE),
    (r"[Cc]lerks?", "control warp", BESIDE_RUNTIME),
    (r"in vain", "without progress", BESIDE_RUNTIME),
    (r"[Ll]ookouts?", "watcher block", BESIDE_RUNTIME),
    (r"[Ee]rrands?", "task", BESIDE_RUNTIME),
    (r"[Aa]dopt(er|ers|s|ed|ion)", "consolidate", BESIDE_RUNTIME),
    (r"resident (daemon|collective|kernel)s?", "persistent kernel, or pre-posted buffers", BESIDE_RUNTIME),
    (r"[Ll]eases?", "pre-posted buffers", BESIDE_RUNTIME),
    (r"made ready|ready steps", "resolved", BESIDE_RUNTIME),
    (r"straight (block|kernel|program|plan)s?", "run-to-completion", BESIDE_RUNTIME),
    (r"[Ll]edgers?", "scheduling cache", BESIDE_RUNTIME),
    (r"[Tt]enants?", "client", BESIDE_RUNTIME),
    (r"[Ii]ntake", "submission polling", BESIDE_RUNTIME),
    (r"standing", "scheduling key", BESIDE_RUNTIME),
    (r"bell rope|BellRope", "doorbell", BESIDE_RUNTIME),
]

# What a file need not keep, and why.
EXEMPT = {
    "plan/model/opcode.h": (r"fold", "one sentence; the file is being changed by others"),
}

TEST_FOLDERS = (*EVERYWHERE, "bench", "examples", "nccl", "python", "runtime", "support")
RELATIVE_NAME = re.compile(
    r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*\w+,\s*(Wh(?:at|o|om|ose)(?:ever)?[A-Z]\w*)\)|^\s*def (test_wh(?:at|o|om|ose)(?:ever)?_\w*)\(", re.M
)

SUFFIXES = (".cpp", ".h", ".cu", ".cuh", ".td", ".def", ".coll", ".py", ".sh", ".mlir", ".test", ".md", ".bazel", ".mutants", ".leftout")
# They have the words in lists of what must not be said.
LISTS = "test/layering/"


def gone_in(name: str, text: str) -> list[str]:
    found = []
    exempt = EXEMPT.get(name, ("", ""))[0]
    for pattern, instead, folders in GONE:
        if not name.startswith(tuple(folder + "/" for folder in folders)):
            continue
        for hit in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text):
            if exempt and re.fullmatch(exempt, hit[0]):
                continue
            found.append(f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: '{hit[0]}': say {instead}")
    return found


def relative_names(name: str, text: str) -> list[str]:
    return [f"{name}: {hit[1] or hit[2]}: name the subject, the condition, the result" for hit in RELATIVE_NAME.finditer(text)]


def self_check() -> None:
    assert gone_in("compiler/a.h", "struct Tactics {") and gone_in("test/a.cpp", "the NoEmitter of it")
    assert gone_in("plan/a.cpp", "\ncanFoldLater(x)") == ["plan/a.cpp:2: 'canFoldLater': say reduce, reduction"]
    assert not gone_in("tools/a.cpp", "ownFolder(); a folder; --no-fold-arrivals; foldArrivals")
    assert gone_in("tools/a.cpp", "a lease") and not gone_in("test/a.cpp", "a lease")
    assert relative_names("plan/a_test.cpp", "TEST(A, WhatIsNot) {") and relative_names("tools/a.py", "    def test_what_is(self):")
    assert relative_names("runtime/a_test.cpp", "TYPED_TEST(A,\n  WhoseIs) {") and relative_names("python/a.py", "def test_whatever_is():")
    assert not relative_names("plan/a_test.cpp", "TEST(A, WholeNames) {") and not relative_names("test/torch/a.py", "def test_whole():")


def main() -> int:
    self_check()
    # Runfiles and sandboxes link to the file itself.
    root = pathlib.Path(os.path.realpath(__file__)).parents[2]
    wrong, looked_at = [], 0
    for folder in TEST_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix not in SUFFIXES or name.startswith(LISTS) or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            looked_at += 1
            wrong += gone_in(name, text) + relative_names(name, text)
    print("\n".join(wrong) or f"{looked_at} files")
    return 1 if wrong or looked_at < 1000 else 0


sys.exit(main())
