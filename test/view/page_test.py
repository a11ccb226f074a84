#!/usr/bin/env python3
"""What the page of `occl view` draws and says, its scripts in Node.js: arrows, rows, hints, tables. In Chromium: browser_test.py."""

import json
import sys
import tempfile

from dom import Dom
from drawn import (FILLED, STROKED, boxes_of, draws_the_plan, lines_between, replace_once, same,
                   with_other_arrows)
from pages import Tools, data_of

PLANS = [("allreduce/ring", "-D", "ranks=4"), ("allreduce/double_binary_tree", "-D", "ranks=6"),
         ("allreduce/all_pairs", "-D", "ranks=4", "--direct", "--max-thread-blocks=2")]
# What breaks the arrows, as the page's script has it and as it then is.
BROKEN = [
    ("arrows.push({from, to, ", "arrows.push({from: to, to: from, "),
    ("return this.end[from] <= this.begin[to] ? this.end[from] : this.begin[from];", "return this.begin[from];"),
    ("at += ARROW", "at += 2 * ARROW"),
    ("[this.xOf(arrow.start), y[0], this.xOf(layer.begin[arrow.to]), y[1]]",
     "[this.xOf(arrow.start), y[1], this.xOf(layer.begin[arrow.to]), y[0]]"),
    ("this.xOf(layer.begin[arrow.to])", "this.xOf(layer.end[arrow.to])"),
    ("[arrow.from, arrow.to].map(span => this.yOf(layer.lane[span], number)",
     "[arrow.from, arrow.to].map(span => this.yOf(layer.lane[span] ^ 1, number)"),
    ("context.moveTo(x0, y0);", "context.moveTo(x0, y0 + BAR);"),
]


def test_arrows_and_rows(page: Dom, tools: Tools) -> None:
    for name, *options in PLANS:
        plan = tools.compile(name, *options)
        path = tools.view(plan, "--bytes", "16KiB")
        page.open(path)
        assert draws_the_plan(page, path, plan), name
        colours = page.evaluate("COLOURS")
        filled = page.evaluate(FILLED)
        for begin, end, y, kind in boxes_of(page, data_of(path)).values():
            assert any(abs(x - begin) < 0.01 and abs(top + height / 2 - y) < 0.01 and abs(width - max(1, end - begin)) < 0.01
                       and colour == colours[kind] for x, top, width, height, colour in filled), (name, begin, end, y, kind)


def test_a_wrong_arrow_is_seen(page: Dom, tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=4")
    path = tools.view(plan, "--bytes", "16KiB")
    with_other_arrows(path)
    page.open(path)
    assert not draws_the_plan(page, path, plan)
    for old, new in BROKEN:
        tools.view(plan, "--bytes", "16KiB")
        replace_once(path, old, new)
        page.open(path)
        assert not draws_the_plan(page, path, plan), (old, new)


def test_ranks_are_chosen(page: Dom, tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=8")
    path = tools.view(plan, "--bytes", "16KiB")
    page.open(path)
    page.evaluate("element('ranks').value = '1, 3-4', element('ranks').dispatchEvent(new Event('input'))")
    assert draws_the_plan(page, path, plan, lambda rank: rank in (1, 3, 4))
    assert len(page.evaluate(STROKED)) == 14, "from 3 to 4 in 2 (n - 1) steps"


def test_recorded_below_predicted(page: Dom, tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=3")
    path = tools.view(plan, "--bytes", "12000", "--trace", tools.record(plan, "--count", "3000", "--iterations", "3"))
    page.open(path)
    data = data_of(path)
    options = [int(run) for run in page.evaluate("element('invocation').options.map(one => one.value)")]
    assert len(options) >= 3 and options == sorted(set(options)), options
    for run in options:
        page.evaluate(f"element('invocation').value = {run}, element('invocation').dispatchEvent(new Event('change'))")
        expected = [line for layer in (0, 1) for line in lines_between(plan, boxes_of(page, data, layer, run))]
        assert same(page.evaluate(STROKED), expected), run
    said = page.evaluate("element('panels').textContent")
    assert "predicted: by source line" in said and "measured: by source line" in said, said


def hint_at(page: Dom, x: float, y: float) -> str:
    page.evaluate(f"element('canvas').dispatchEvent(new Event('pointermove', {{offsetX: {x}, offsetY: {y}, "
                  f"clientX: {x}, clientY: {y}, buttons: 0}}))")
    return page.evaluate("element('hint').style.display === 'block' ? element('hint').textContent : ''")


def test_hints_and_tables(page: Dom, tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=4")
    path = tools.view(plan, "--bytes", "64KiB")
    page.open(path)
    boxes = boxes_of(page, data_of(path))
    for (rank, block, _), (begin, end, y, kind) in boxes.items():
        hint = hint_at(page, (begin + end) / 2, y)
        assert hint.startswith(f"rank {rank}, thread block {block}: {kind}\n") and "\nring.coll:" in hint, hint
    assert hint_at(page, 20, 500) == ""
    said = page.evaluate("element('panels').textContent")
    assert "of thread blocks' time" in said and "predicted: links, bytes and busy" in said, said
    assert said.count("96 KiB, ") == 8, "2 (n - 1) / n of 64 KiB leave and reach each rank"


def test_marks_of_a_program(page: Dom, tools: Tools) -> None:
    def event(phase: str, kind: str, thread: int, name: str, at: float, **more: object) -> dict:
        return {"ph": phase, "cat": kind, "pid": 0, "tid": thread, "name": name, "ts": at, **more}
    args = {"collective": "'sum'", "invocation": 0}
    events = [{"ph": "M", "name": "thread_name", "pid": 0, "tid": 9, "args": {"name": "requests"}},
              event("X", "instruction", 0, "send", 10, dur=4, args=args),
              event("s", "message", 0, "message", 13, id="a"),
              event("i", "request", 9, "submitted", 1, args=args),
              event("i", "mark", 9, "partition 3 ready", 5, args=args),
              event("i", "mark", 9, "partitions 4 to 8 ready", 30, args=args),
              event("i", "request", 0, "preempted", 16, args=args),
              event("X", "instruction", 0, "recv", 20, dur=4, args=args),
              event("f", "message", 0, "message", 20, id="a")]
    trace = f"{tools.folder}/marks.trace.json"
    with open(trace, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    path = tools.view(trace)
    page.open(path)
    assert data_of(path)["lanes"] == [[0, "thread 0", 1], [0, "requests", 0]]
    colours = page.evaluate("COLOURS")
    marks = sorted(x for x, _, width, _, colour in page.evaluate(FILLED) if (width, colour) == (2, colours["mark"]))
    to_x = page.evaluate("[5, 30].map(time => picture.xOf(time))")
    assert len(marks) == 2 and all(abs(a - b) < 0.01 for a, b in zip(marks, to_x)), (marks, to_x)
    assert hint_at(page, to_x[1], page.evaluate("picture.yOf(1, 0)") + 5).startswith(
        "rank 0, requests: mark\npartitions 4 to 8 ready\n")
    # The moment between them takes no arrow away, and no time.
    assert len(page.evaluate(STROKED)) == 1
    assert "preempted" not in page.evaluate("element('panels').textContent")


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            with tempfile.TemporaryDirectory() as folder, Dom() as page:
                test(page, Tools(sys.argv[1], sys.argv[2], folder))
