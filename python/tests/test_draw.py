"""Pictures of schedules."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET

import pytest
from conftest import STAR

import occl
from occl import _occlc
from occl._plan import schedule as schedules

SVG = "{http://www.w3.org/2000/svg}"


def shapes(drawing):
    root = ET.fromstring(drawing.svg)
    return root, root.findall(f".//{SVG}rect[@class='i']"), [
        line for line in root.findall(f".//{SVG}line") if line.get("marker-end")]


@pytest.mark.parametrize("by", ["time", "step"])
def test_a_ring(by):
    plan = occl.compile(occl.algorithms("allreduce/ring"), ranks=4)
    drawing = plan.draw(by=by, bytes="64KiB")
    root, rects, arrows = shapes(drawing)
    titles = [rect.find(f"{SVG}title").text for rect in rects]
    assert sum("waits for" not in title for title in titles) == plan.instructions
    # Each rank sends a message to the next one in 2 (n - 1) steps.
    assert len(arrows) == 4 * 6
    assert all("ring.coll:" in title for title in titles if "waits for" not in title)
    names = [text.text for text in root.findall(f"{SVG}text")]
    assert [f"rank {rank}" in names for rank in range(4)] == [True] * 4
    assert ("7 steps" in drawing.title) == (by == "step")


def test_the_times_are_those_of_occlc(tmp_path):
    plan = occl.compile(STAR)
    path = plan.save(tmp_path / "star.plan.json")
    trace = json.loads(subprocess.run([_occlc.executable(), "trace", path, "--bytes", "64KiB"],
                                      capture_output=True, check=True).stdout)
    schedule = schedules.predicted(plan, ["--bytes", "64KiB"])
    assert schedule.end == pytest.approx(trace["otherData"]["makespanMicroseconds"])
    assert all(message.receiver.end > message.sender.begin for message in schedule.messages)


def test_thread_blocks_signals_and_some_ranks():
    plan = occl.compile(occl.algorithms("allreduce/all_pairs"), ranks=4, direct=True,
                        max_thread_blocks=2, instances=2)
    drawing = plan.draw(by="step", ranks=[0, 3])
    root, _, arrows = shapes(drawing)
    assert arrows and all("s" in arrow.get("class").split() for arrow in arrows)
    names = [text.text for text in root.findall(f"{SVG}text")]
    assert "rank 3 \u00b7 0" in names and not any("rank 1" in (name or "") for name in names)


def test_steps_respect_every_order():
    """Of any two instructions where one waits for the other, it is the later one."""
    plan = occl.compile(occl.algorithms("allreduce/double_binary_tree"), ranks=6)
    for message in schedules.in_steps(plan).messages:
        assert message.receiver.begin >= message.sender.end


def test_notebooks_and_files(tmp_path):
    drawing = occl.compile(STAR).draw()
    assert drawing._repr_svg_() == drawing.svg and drawing.svg in drawing._repr_html_()
    ET.fromstring(drawing.save(tmp_path / "star.svg").read_text())
    assert drawing.svg in drawing.save(tmp_path / "star.html").read_text()
    assert "star" in repr(drawing)
    with pytest.raises(occl.InvalidArgumentError, match="neither in .svg nor in .html"):
        drawing.save(tmp_path / "star.png")


def test_what_cannot_be_drawn():
    plan = occl.compile(STAR)
    with pytest.raises(occl.InvalidArgumentError, match="by is 'size'"):
        plan.draw(by="size")
    with pytest.raises(IndexError, match="no rank 4"):
        plan.draw(ranks=[4])
    large = occl.compile(occl.algorithms("allreduce/ring"), ranks=200)
    with pytest.raises(occl.InvalidArgumentError, match="choose fewer ranks"):
        large.draw(by="step")
    assert large.draw(by="step", ranks=range(2)).svg


def test_names_are_escaped(tmp_path):
    path = tmp_path / "a<b&c.coll"
    path.write_text(STAR)
    drawing = occl.compile(path).draw(by="step")
    ET.fromstring(drawing.svg)
    assert "a&lt;b&amp;c.coll" in drawing.svg
