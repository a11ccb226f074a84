#!/usr/bin/env python3
"""Checks a trace of `occlc trace`: JSON, events that do not overlap, messages that arrive after they were sent."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as stream:
    trace = json.load(stream)
threads, flows, ranks = {}, {}, set()
for event in trace["traceEvents"]:
    if event["ph"] == "M" and event["name"] == "process_name":
        ranks.add(event["pid"])
    elif event["ph"] == "X":
        assert event["dur"] >= 0 and event["args"], event
        threads.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["dur"], event["cat"]))
    elif event["ph"] in "sf":
        flows.setdefault(event["id"], {})[event["ph"]] = event
for events in threads.values():
    events.sort()
    for (begin, duration, _), (following, _, _) in zip(events, events[1:]):
        assert begin + duration <= following + 1e-6, (begin, duration, following)
for ends in flows.values():
    assert ends["s"]["ts"] <= ends["f"]["ts"] and ends["s"]["pid"] != ends["f"]["pid"], ends
makespan = max(begin + duration for events in threads.values() for begin, duration, _ in events)
data = trace["otherData"]
assert data["tiles"] > data["tilesInTrace"] or abs(makespan - data["makespanMicroseconds"]) < 1e-3
instructions = sum(kind == "instruction" for events in threads.values() for _, _, kind in events)
print(f"{len(ranks)} ranks, {len(threads)} thread blocks, {instructions} instructions, {len(flows)} messages,",
      f"{data['tilesInTrace']} tiles")
