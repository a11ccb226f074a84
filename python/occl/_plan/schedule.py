"""A plan's instructions in time, and the messages between them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import _occlc
from ..plan import Plan

Place = tuple[int, int, int]  # rank, thread block, instruction


@dataclass(frozen=True, slots=True)
class Span:
    """An instruction on a tile, or a wait before it. Times are in the schedule's unit."""

    rank: int
    block: int
    begin: float
    end: float
    op: str
    """'wait' if it is one."""
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """From an instruction to another one, of two ranks: data, or a signal."""

    sender: Span
    receiver: Span
    is_signal: bool


@dataclass(frozen=True)
class Schedule:
    spans: list[Span]
    messages: list[Message]
    unit: str
    end: float


def instructions(plan: Plan) -> Iterator[tuple[Place, dict[str, Any]]]:
    for rank, of_rank in enumerate(plan.document["ranks"]):
        for block, of_block in enumerate(of_rank["threadBlocks"]):
            for index, instruction in enumerate(of_block):
                yield (rank, block, index), instruction


def links(plan: Plan) -> list[tuple[Place, Place, bool]]:
    """Sender, receiver, and whether it is a signal, of each message of a tile: the k-th that one
    instruction appends to a connection is the k-th that another one takes from it."""
    sent: dict[int, list[Place]] = defaultdict(list)
    for place, instruction in instructions(plan):
        for operand in instruction.get("dst", ()):
            if operand[0] == "connection":
                sent[operand[1]].append(place)
    found = []
    taken: dict[tuple[int, int], int] = defaultdict(int)
    for place, instruction in instructions(plan):
        is_signal = instruction["op"] == "wait"
        for operand in instruction.get("src", ()):
            if operand[0] == "connection":
                key = operand[1], place[0]
                number = instruction["value"] - 1 if is_signal else taken[key]
                taken[key] += 1
                found.append((sent[operand[1]][number], place, is_signal))
    return found


def predicted(plan: Plan, options: list[str]) -> Schedule:
    """By the cost model, in microseconds. Large transfers are several tiles."""
    trace = json.loads(_occlc.on_plan("trace", plan.data, options))
    spans, by_place = [], {}
    for event in trace["traceEvents"]:
        if event.get("ph") != "X":
            continue
        arguments, begin = event["args"], event["ts"]
        is_instruction = event["cat"] == "instruction"
        text = arguments["does"] if is_instruction else f"waits for {arguments['for']}"
        span = Span(event["pid"], event["tid"], begin, begin + event["dur"],
                    event["name"] if is_instruction else "wait",
                    f"{text}\n{arguments.get('source', '')}".rstrip())
        spans.append(span)
        if is_instruction:
            by_place[event["pid"], event["tid"], arguments["instruction"], arguments["tile"]] = span
    messages = []
    for sender, receiver, is_signal in links(plan):
        for tile in range(trace["otherData"]["tilesInTrace"]):
            ends = by_place.get((*sender, tile)), by_place.get((*receiver, tile))
            if ends[0] is not None and ends[1] is not None:
                messages.append(Message(ends[0], ends[1], is_signal))
    makespan = max((span.end for span in spans), default=0.0)
    return Schedule(spans, messages, "us", makespan)


def in_steps(plan: Plan) -> Schedule:
    """Each instruction takes a step, and begins as soon as those have ended that it waits for."""
    before: dict[Place, list[Place]] = {}
    for (rank, block, index), instruction in instructions(plan):
        waits = [(rank, *dependency) for dependency in instruction.get("after", ())]
        if index:
            waits.append((rank, block, index - 1))
        before[rank, block, index] = waits
    found = links(plan)
    for sender, receiver, _ in found:
        before[receiver].append(sender)
    steps = _levels(before)
    spans = {place: Span(place[0], place[1], steps[place], steps[place] + 0.7, instruction["op"],
                         _text(plan, instruction)) for place, instruction in instructions(plan)}
    messages = [Message(spans[a], spans[b], is_signal) for a, b, is_signal in found]
    return Schedule(list(spans.values()), messages, "steps", max(steps.values(), default=-1) + 1)


def _levels(before: dict[Place, list[Place]]) -> dict[Place, int]:
    """Longest ways; the plan is verified, so there are no cycles."""
    after: dict[Place, list[Place]] = defaultdict(list)
    missing = {place: len(waits) for place, waits in before.items()}
    for place, waits in before.items():
        for wait in waits:
            after[wait].append(place)
    levels = {place: 0 for place, number in missing.items() if number == 0}
    ready = list(levels)
    while ready:
        place = ready.pop()
        for later in after[place]:
            levels[later] = max(levels.get(later, 0), levels[place] + 1)
            missing[later] -= 1
            if missing[later] == 0:
                ready.append(later)
    return levels


def _text(plan: Plan, instruction: dict[str, Any]) -> str:
    def operand(value: list[Any]) -> str:
        if value[0] == "connection":
            source, _, destinations = plan.document["connections"][value[1]][:3]
            return f"connection {source} -> {', '.join(map(str, destinations))}"
        of_rank = f" of rank {value[2]}" if len(value) > 2 else ""
        return f"{value[0]}[{value[1]}]{of_rank}"

    sources = " + ".join(operand(value) for value in instruction.get("src", ()))
    targets = ", ".join(operand(value) for value in instruction.get("dst", ()))
    text = f"{instruction['op']} {sources}{' to ' if targets else ''}{targets}"
    if "at" in instruction:
        file, line, column = plan.document["locations"][instruction["at"]]
        text += f"\n{plan.document['files'][file]}:{line}:{column}"
    return text
