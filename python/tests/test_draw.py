"""Pictures of schedules. What the page shows is tested in test/view."""

from __future__ import annotations

import html
import json

import numpy as np
import pytest
from conftest import STAR

import occl


def data_of(drawing):
    begin = drawing.html.index('id="data">') + len('id="data">')
    return json.loads(drawing.html[begin:drawing.html.index("</script>", begin)])


def test_a_ring():
    plan = occl.compile(occl.algorithms("allreduce/ring"), ranks=4)
    data = data_of(plan.draw(bytes="16KiB"))
    [layer] = data["layers"]
    assert layer["name"] == "predicted" and len(data["lanes"]) == 4
    # Each rank sends a message to the next one in 2 (n - 1) steps.
    assert len(layer["arrows"]) == 3 * 4 * 6
    assert "16384 bytes" in data["title"]


def test_a_trace_lies_below(tmp_path, job):
    plan = occl.compile(STAR, ranks=2)

    def body(comm):
        comm.trace_start(tmp_path / "run.%r.json")
        comm.call(plan, np.ones(1000))
        comm.trace_stop()

    job(2)(body)
    predicted, measured = data_of(plan.draw(trace=tmp_path / "run.1.json"))["layers"]
    assert (predicted["name"], measured["name"]) == ("predicted", "measured")
    assert 0 < len(measured["spans"]), "what rank 1 has done"
    with pytest.raises(occl.CompileError, match="no run of plan 'ring'"):
        occl.compile(occl.algorithms("allreduce/ring"), ranks=2).draw(trace=tmp_path / "run.1.json")
    with pytest.raises(occl.CompileError, match="cannot read"):
        plan.draw(trace=tmp_path / "missing.json")


def test_notebooks_and_files(tmp_path):
    drawing = occl.compile(STAR).draw()
    assert drawing.save(tmp_path / "star.html").read_text() == drawing.html
    shown = drawing._repr_html_()
    assert html.unescape(shown.split('srcdoc="')[1].split('"')[0]) == drawing.html
    assert "star" in repr(drawing)
    with pytest.raises(occl.InvalidArgumentError, match="does not end in .html"):
        drawing.save(tmp_path / "star.svg")
