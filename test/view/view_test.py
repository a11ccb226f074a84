#!/usr/bin/env python3
"""What `occlc view` puts into its page: messages, places in the source, times, loads; without a browser."""

import sys
import tempfile

from pages import Tools, check_arrows, data_of, spans_of

OCCLC, RUN = sys.argv[1:3]


def test_the_arrows_of_plans_are_their_messages(tools: Tools) -> None:
    for name, *options in (("allreduce/ring", "-D", "ranks=4"), ("allreduce/double_binary_tree", "-D", "ranks=6"),
                           ("allreduce/one_shot", "-D", "ranks=3"), ("broadcast/chain", "-D", "ranks=4", "--instances=2"),
                           ("allreduce/all_pairs", "-D", "ranks=4", "--direct", "--max-thread-blocks=2")):
        plan = tools.compile(name, *options)
        data = data_of(tools.view(plan, "--bytes", "16KiB"))
        [layer] = data["layers"]
        assert layer["arrows"], name
        check_arrows(plan, data, layer, 1)
        signals = set(layer["arrows"][2::3])
        assert signals == {1 if "--direct" in options else 0}, (name, signals)


def test_a_wrong_arrow_is_seen(tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=4")
    data = data_of(tools.view(plan, "--bytes", "16KiB"))
    [layer] = data["layers"]
    layer["arrows"][0], layer["arrows"][3] = layer["arrows"][3], layer["arrows"][0]
    try:
        check_arrows(plan, data, layer, 1)
    except AssertionError:
        return
    raise AssertionError("two arrows have changed their beginnings, and nobody sees it")


def test_texts_and_loads(tools: Tools) -> None:
    data = data_of(tools.view(tools.compile("allreduce/ring", "-D", "ranks=4"), "--bytes", "64KiB"))
    [layer] = data["layers"]
    assert data["lanes"] == [[rank, "thread block 0", 1] for rank in range(4)]
    instructions = [span for span in spans_of(layer) if span[7] >= 0]
    assert len(instructions) == 28
    assert all(layer["texts"][span[5]].startswith("ring.coll:") for span in instructions)
    assert {layer["texts"][span[3]] for span in instructions} >= {"send", "recv", "recvReduceSend"}
    # 2 (n - 1) / n of 64 KiB leave and reach each rank.
    assert [link[1] for link in layer["links"] if "port" in link[0]] == [98304] * 8, layer["links"]
    assert all(link[2] > 0 for link in layer["links"])


def test_a_part_of_many_tiles_says_so(tools: Tools) -> None:
    data = data_of(tools.view(tools.compile("allreduce/ring", "-D", "ranks=8"), "--bytes", "1GiB"))
    [layer] = data["layers"]
    assert 0 < layer["tilesShown"] < layer["tiles"], (layer["tilesShown"], layer["tiles"])
    shown = max(span[1] + span[2] for span in spans_of(layer))
    assert shown < layer["makespan"] and all(link[2] <= layer["makespan"] for link in layer["links"])


def test_recorded_runs_lie_over_the_prediction(tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=3")
    trace = tools.record(plan, "--count", "3000", "--iterations", "4")
    data = data_of(tools.view(plan, "--trace", trace, "--bytes", "12000", "-o", f"{tools.folder}/both.html"))
    predicted, measured = data["layers"]
    check_arrows(plan, data, predicted, 1)
    runs = {span[6] for span in spans_of(measured)}
    assert len(runs) >= 4 and all("invocation" in measured["invocations"][run] for run in runs)
    check_arrows(plan, data, measured, len(runs))
    begins = {run: min(span[1] for span in spans_of(measured) if span[6] == run and span[7] >= 0) for run in runs}
    assert begins == dict.fromkeys(runs, 0)

    # Alone it has the same messages, and lanes for what executes.
    data = data_of(tools.view(trace, "-o", f"{tools.folder}/trace.html"))
    [layer] = data["layers"]
    assert layer["name"] == "measured" and len(layer["arrows"]) == len(measured["arrows"])
    assert any(not is_block for _, _, is_block in data["lanes"])


def test_nothing_in_a_name_ends_the_data(tools: Tools) -> None:
    plan = tools.compile("allreduce/ring", "-D", "ranks=2")
    with open(plan, encoding="utf-8") as file:
        text = file.read()
    with open(plan, "w", encoding="utf-8") as file:
        file.write(text.replace("ring.coll", "</script><b>.coll"))
    data = data_of(tools.view(plan, "--bytes", "16KiB"))
    assert any("</script><b>.coll" in one for one in data["layers"][0]["texts"])


for name, test in list(globals().items()):
    if name.startswith("test_"):
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            test(Tools(OCCLC, RUN, folder))
