#!/usr/bin/env python3
"""Pages of docs/ are short enough to be read: at most 2,500 words a page, as `wc -w` counts them,
and 80 a paragraph, with a diagram, and in the field's terms. README.md has at most 500 words.
Figures that were measured are in performance.md and docs/decisions alone.

A paragraph is what stands between blank lines; an item of a list, a row of a table and a block of
code are one each. A mermaid diagram is none. Runs in the root of the tree. Pages of docs/decisions,
which are about their time, are as short, and have the headings of their form. A page that is exempt
from a rule which it keeps is an error, too, so the list only shrinks."""

import pathlib
import re
import sys

PAGE_WORDS = 2500
README_WORDS = 500
PARAGRAPH_WORDS = 80
GLOSSARY_ROWS = 60

# Page: the rules that it need not keep, and why.
EXEMPT: dict[str, tuple[set[str], str]] = {
    "language.md": ({"page", "code"}, "a reference, with its grammar and whole programs"),
    "plan.md": ({"page", "code"}, "a reference, with a whole plan"),
    "progress.md": ({"page"}, "a proof"),
    "topology.md": ({"code"}, "a whole topology, which a test reads"),
}

# A word that only this project used, and the one that readers know.
PRIVATE = {
    r"straight (blocks?|kernels?|programs?|ones?|plans?)": "run-to-completion",
    r"(in|plain) lines": "LL or LL128",
    r"fold(s|ed|ing)?": "reduce",
    r"clerk": "control warp",
    r"in vain": "without progress",
    r"lookout": "watcher block",
    r"adopt(er|s|ed|ion)": "consolidate",
    r"resident (daemons?|collectives?|kernels?)": "persistent kernel, or pre-posted buffers",
    r"leases?": "pre-posted buffers",
    r"made ready|ready steps": "resolved",
    r"(announce )?cells?": "directory entry",
    r"announce(s|d|ments?)?|announcing": "publish, descriptor",
    r"standing": "scheduling key",
    r"obstacles?": "blocking condition",
    r"ledger": "scheduling cache",
    r"tenants?": "client",
    r"intake": "submission polling",
    r"hand(ed|s|ing)? over": "direct dispatch",
    r"gives? up|gave up|giving up": "time out, abort",
    r"tactics": "tuning",
}

# A sentence whose subject is a relative clause: readers look for a noun first. Questions are none.
RELATIVE_SUBJECT = re.compile(
    r"(?:^|[.;:!?)] +|[*]{2} ?|^- |\| )((?:Who|Whoever|What) [^.?!:|]*)[.!:|]", re.M
)
# Likewise in the middle of one: a verb of its own follows the clause's.
RELATIVE_SECOND = re.compile(
    r";\s+((?:who|whoever|what)\s(?:[^\s.;:|?!]+\s+)+?(?:is|are|was|were|stays?|wins?|goes)\b[^.;|]*)"
)
# What somebody has measured; limits and time-outs are none.
FIGURE = re.compile(
    r"\b(?:[\d.,]+|twice|two|three|four|five|six|seven|eight|nine|ten)(?: to [\d.,]+)?"
    r" times as (?:fast|slow|long)\b"
    r"|\b(?:takes?|took|taking) (?:about |some |only )?[\d.,]+ ?"
    r"(?:ns|us|ms|s|seconds|minutes|hours)\b"
)
# Words of mermaid's own as names of nodes; what ends a statement, in the text of a message.
DIAGRAM_TRAP = re.compile(
    r"(?:^ *|> *)(?:call|click|end|style|class) *(?:--|-\.|==|&)|-->? *(?:call|end)$|: [^\"\n]*;",
    re.M,
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
CODE_SPAN = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\([^)]*\)")
NEW_PARAGRAPH = re.compile(r"\s*(\||[-*] |\d+\. |#)")


def count(text: str) -> int:
    return sum(1 for word in text.split() if re.search(r"\w", word))


def paragraphs(text: str) -> list[tuple[bool, str]]:
    """The page without headings, cut where paragraphs begin; and whether each is fenced code."""
    found: list[list] = []
    is_open = False
    is_code = False
    for line in text.split("\n"):
        if line.startswith("```"):
            is_code = not is_code
            is_open = False
            continue
        if not is_code and (not line.strip() or line.startswith("#")):
            is_open = False
            continue
        if not is_open or (not is_code and NEW_PARAGRAPH.match(line)):
            found.append([is_code, ""])
        found[-1][1] += line + "\n"
        is_open = True
    return [(code, each) for code, each in found]


def prose(text: str) -> str:
    """Without code, which has the names that the sources have, and without where links lead."""
    text = FENCE.sub("", text)
    text = "\n".join(line for line in text.split("\n") if not line.startswith("    "))
    return LINK.sub("]", CODE_SPAN.sub("", text))


def broken_rules(text: str) -> dict[str, list[str]]:
    broken: dict[str, list[str]] = {}
    has_diagram = "```mermaid\n" in text or re.search(r"!\[[^\]]*\]\([^)]*\.svg\)", text)
    diagrams = [block[2] for block in FENCE.finditer(text) if block[1] == "mermaid"]
    words = len(text.split())
    if words > PAGE_WORDS:
        broken["page"] = [f"{words} words, of at most {PAGE_WORDS}"]
    text = FENCE.sub(lambda block: "" if block[1] == "mermaid" else block[0], text)
    for is_code, each in paragraphs(text):
        if count(each) > PARAGRAPH_WORDS:
            broken.setdefault("code" if is_code else "paragraph", []).append(
                f"{count(each)} words in one paragraph, of at most {PARAGRAPH_WORDS}: "
                f"{' '.join(each.split()[:8])} ..."
            )
    if not has_diagram:
        broken["diagram"] = ["has neither a mermaid diagram nor an SVG"]
    traps = [trap[0].strip() for each in diagrams for trap in DIAGRAM_TRAP.finditer(each)]
    if traps:
        broken["diagram"] = [f'mermaid does not read "{trap}" as it is meant' for trap in traps]
    words = [
        f'"{hit[0]}": say {instead}'
        for private, instead in PRIVATE.items()
        for hit in re.finditer(rf"\b({private})\b", prose(text), re.I)
    ]
    words += relative_subjects(text)
    if words:
        broken["words"] = words
    return broken


def decision_errors(text: str) -> list[str]:
    """Sizes and subjects of a page of docs/decisions, and its form: Context, Chosen, what else."""
    broken = broken_rules(text)
    wrong = [message for rule in ("page", "paragraph", "code") for message in broken.get(rule, [])]
    wrong += relative_subjects(text)
    headings = re.findall(r"^## (.*)", FENCE.sub("", text), re.M)
    if headings[:1] != ["Context"]:
        wrong.append("its first heading is not 'Context'")
    if not any(heading.startswith("Chosen") for heading in headings):
        wrong.append("has no heading 'Chosen'")
    if not any(heading.startswith(("Options", "Dropped", "Left out")) for heading in headings):
        wrong.append("has no heading 'Options', 'Dropped' or 'Left out'")
    return wrong


def relative_subjects(text: str) -> list[str]:
    text = re.sub(r"^#.*$", "", prose(text), flags=re.M)
    return [
        f'"{hit[1][:40]} ...": begin with a noun'
        for pattern in (RELATIVE_SUBJECT, RELATIVE_SECOND)
        for hit in pattern.finditer(text)
    ]


def figures(text: str) -> list[str]:
    return [
        f'"{hit[0]}": figures are in performance.md and decisions'
        for hit in FIGURE.finditer(prose(text))
    ]


def readme_errors(text: str) -> list[str]:
    """The sizes of what README has."""
    words = len(text.split())
    program = re.search(r"^    #include.*?^    \}\n", text, re.M | re.S)
    lines = program[0].count("\n") if program else 0
    rows = len(re.findall(r"^\| ", text, re.M)) - 1
    links = len(LINK.findall(text.split("## More")[-1]))
    wrong = []
    if not 100 < words <= README_WORDS:
        wrong.append(f"has {words} words, of at most {README_WORDS}")
    if not 0 < lines <= 15:
        wrong.append(f"its program has {lines} lines, of at most 15")
    if not 0 < rows <= 10:
        wrong.append(f"its table has {rows} rows, of at most 10")
    if links != 6:
        wrong.append(f"has {links} links under More, and not 6")
    return wrong


def self_check() -> None:
    assert relative_subjects("All is there; what is missing is\nnamed.")
    assert relative_subjects("What is merged builds.")
    assert not relative_subjects("It says who waits; what is refused; what fits, and how.")
    assert figures("It is 1.2 to 1.3 times as fast.") and figures("It takes about 20 seconds of g++.")
    assert not figures("It ends after 30 s, in four times as many schedules; rounds take a period.")


    page = "# A page\n\n## Context\n\nWords.\n\n## Chosen\n\nThis.\n\n## Dropped\n\nThat.\n"
    assert not decision_errors(page) and decision_errors(page + "word " * (PARAGRAPH_WORDS + 1))
    assert decision_errors(page + "word\n\n" * PAGE_WORDS)
    for heading in ("Context", "Chosen", "Dropped"):
        assert decision_errors(page.replace(f"## {heading}\n", ""))


def main() -> int:
    self_check()
    wrong = []
    pages = sorted(pathlib.Path("docs").glob("*.md"))
    for page in pages:
        exempt, _ = EXEMPT.get(page.name, (set(), ""))
        broken = broken_rules(page.read_text(encoding="utf-8"))
        wrong += [
            f"{page}: {message}"
            for rule, messages in broken.items()
            if rule not in exempt
            for message in messages
        ]
        wrong += [
            f"{page}: keeps rule '{rule}': take it out of EXEMPT"
            for rule in sorted(exempt - set(broken))
        ]
    wrong += [
        f"{name}: is in EXEMPT, and not in docs"
        for name in EXEMPT
        if not pathlib.Path("docs", name).exists()
    ]
    glossary = pathlib.Path("docs/glossary.md").read_text(encoding="utf-8")
    rows = len(re.findall(r"^\| ", glossary, re.M)) - 1
    if not 0 < rows <= GLOSSARY_ROWS:
        wrong.append(f"docs/glossary.md: has {rows} rows, of at most {GLOSSARY_ROWS}")
    readme = pathlib.Path("README.md").read_text(encoding="utf-8")
    wrong += [f"README.md: {message}" for message in readme_errors(readme)]
    for name in ("README.md", "CONTRIBUTING.md"):
        text = pathlib.Path(name).read_text(encoding="utf-8")
        wrong += [f"{name}: {message}" for message in relative_subjects(text)]
    for page in [*pages, *pathlib.Path("examples").glob("*/README.md")]:
        if page.name != "performance.md":
            wrong += [f"{page}: {message}" for message in figures(page.read_text(encoding="utf-8"))]
    decisions = sorted(pathlib.Path("docs/decisions").rglob("*.md"))
    decisions.remove(pathlib.Path("docs/decisions/README.md"))
    for page in decisions:
        wrong += [f"{page}: {each}" for each in decision_errors(page.read_text(encoding="utf-8"))]
    if len(pages) < 20 or len(decisions) < 40:
        wrong.append(f"only {len(pages)} pages and {len(decisions)} decisions were found")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
