#!/usr/bin/env python3
"""Links in the documentation lead somewhere: to a file that is there and, in a page, to a
heading that it has.

Runs in the root of the tree, which has the pages and what they link to. Fails also if a page of
docs/decisions is not in its index."""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"```.*?```", re.S)


def anchors(page: pathlib.Path) -> set[str]:
    """What a link to a heading says, as GitHub makes it of the heading's text."""
    found = set()
    for heading in re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.M):
        text = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(text.replace(" ", "-"))
    return found


def wrong_links(page: pathlib.Path) -> list[str]:
    wrong = []
    for number, line in enumerate(
        FENCED.sub(lambda code: "\n" * code[0].count("\n"), page.read_text(encoding="utf-8")).split(
            "\n"
        ),
        1,
    ):
        for link in LINK.findall(line):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists():
                wrong.append(f"{page}:{number}: {link}: there is no such file")
            elif heading and target.suffix == ".md" and heading not in anchors(target):
                wrong.append(f"{page}:{number}: {link}: {target} has no such heading")
    return wrong


def main() -> int:
    pages = sorted(pathlib.Path(".").rglob("*.md"))
    wrong = [message for page in pages for message in wrong_links(page)]
    decisions = pathlib.Path("docs/decisions")
    index = (decisions / "README.md").read_text(encoding="utf-8")
    of_decisions = sorted(decisions.rglob("*.md"))
    of_decisions.remove(decisions / "README.md")
    wrong += [
        f"{path}: is not in {decisions}/README.md"
        for path in of_decisions
        if f"({path.relative_to(decisions)})" not in index
    ]
    if len(of_decisions) < 40:
        wrong.append(f"only {len(of_decisions)} decisions were found")
    if len(pages) < 40:
        wrong.append(f"only {len(pages)} pages were found")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
