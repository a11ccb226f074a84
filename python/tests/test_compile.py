"""Compiling, and plans: files, explanation, prediction, interchange."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings

import pytest
from conftest import STAR

import occl
from occl import _occlc
from occl._plan import cbor

WRONG = STAR.replace("output[0][0]", "output[0][9]")


def test_text_and_paths(tmp_path):
    (tmp_path / "star.coll").write_text(STAR)
    plans = [occl.compile(STAR, ranks=3), occl.compile(tmp_path / "star.coll", ranks=3),
             occl.compile(str(tmp_path / "star.coll"), define={"ranks": 3})]
    for plan in plans:
        assert (plan.name, plan.collective, plan.ranks) == ("star", "allreduce", 3)
        assert plan.protocol == "Simple" and plan.instructions > 0 and plan.warnings == ()
        assert repr(plan) == "<occl.Plan star: allreduce of 3 ranks>"


def test_text_imports_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "lib.coll").write_text("function twice(n: int) -> int { return 2 * n; }\n")
    monkeypatch.chdir(tmp_path)
    text = 'import "lib.coll";\n' + STAR.replace("0..ranks", "0..twice(ranks) / 2")
    assert occl.compile(text).ranks == 4


def test_every_algorithm_that_comes_with_it_is_there():
    assert "allreduce/ring" in occl.algorithms() and "h200" in occl.topologies()
    ring = occl.algorithms("allreduce/ring")
    plan = occl.compile(ring, define={"ranks": 4, "order": [3, 1, 2, 0]})
    assert plan.document["parameters"]["order[0]"] == 3
    with pytest.raises(ValueError, match="is it 'allreduce/ring'"):
        occl.algorithms("allreduce/rnig")


def test_options_are_those_of_occlc():
    text = subprocess.run([_occlc.executable(), "compile", "--help"], capture_output=True,
                          text=True).stdout
    flags = {line.split()[0].rpartition(",")[2] for line in text.splitlines()
             if line.startswith("  -")}
    known = {"--" + name.replace("_", "-") for name in occl.CompileOptions.__annotations__}
    # What compile() sets itself, and what is for people at a terminal.
    rest = {"--help", "--define", "--topology", "--output", "--emit", "--stats",
            "--print-pass-timing"}
    assert flags == known | rest


def test_options():
    ring = occl.algorithms("allreduce/ring")
    assert occl.compile(ring, ranks=4, protocol="ll").protocol == "LL"
    plan = occl.compile(ring, ranks=4, instances=2, max_thread_blocks=2, no_multicast=True,
                        werror=False, bytes=["64KiB", 1 << 20])
    assert len(plan.document["ranks"][0]["threadBlocks"]) == 2
    topology = occl.topologies("h200")
    assert occl.compile(ring, ranks=8, topology=topology, protocol="auto").ranks == 8


def test_errors_show_the_caret():
    with pytest.raises(occl.CompileError) as caught:
        occl.compile(WRONG)
    error = caught.value
    line = next(i for i, text in enumerate(WRONG.splitlines(), 1) if "output[0][9]" in text)
    first = error.diagnostics[0]
    assert (first.severity, first.file, first.line) == ("error", "source.coll", line)
    assert first.code and first.code in str(error) and first.message in str(error)
    shown = str(error).splitlines()
    assert shown[0] == str(first)
    assert shown[1] == WRONG.splitlines()[line - 1]
    assert shown[2].index("^") == first.column - 1
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.diagnostics == error.diagnostics


def test_the_text_is_that_of_occlc(tmp_path):
    path = tmp_path / "wrong.coll"
    path.write_text(WRONG)
    printed = subprocess.run([_occlc.executable(), "check", path], capture_output=True, text=True)
    with pytest.raises(occl.CompileError) as caught:
        occl.compile(path)
    assert str(caught.value) == printed.stderr.rstrip()


def test_proofs_that_fail_have_witnesses():
    wrong = STAR.replace("for r in 1..ranks", "for r in 2..ranks")
    with pytest.raises(occl.CompileError) as caught:
        occl.compile(wrong)
    assert any(diagnostic.notes for diagnostic in caught.value.diagnostics)


@pytest.mark.parametrize("source, options, kind, text", [
    ("nowhere.coll", {}, occl.CompileError, "cannot read 'nowhere.coll'"),
    (STAR, {"ranks": "four"}, occl.CompileError, "four"),
    (STAR, {"ranks": 3, "define": {"ranks": 4}}, TypeError, "define says 4"),
    (STAR, {"define": {"size": 4}}, occl.CompileError, "size"),
    (STAR, {"define": ["ranks"]}, TypeError, "define is a list; it is a dict, as {'ranks': 8}"),
    (STAR, {"define": {"ranks": 1.5}}, TypeError, "parameter 'ranks' is a float"),
    (STAR, {"instnces": 2}, TypeError, "no option 'instnces'"),
    (STAR, {"depth": 1.5}, TypeError, "option 'depth' is a float"),
    (STAR, {"depth": 1000}, occl.CompileError, "depth"),
    (STAR, {"topology": "nowhere.topo"}, occl.CompileError, "nowhere.topo"),
    (7, {}, TypeError, "source is a int"),
    (b"algorithm", {}, TypeError, "source is a bytes"),
])
def test_bad_input(source, options, kind, text):
    with pytest.raises(kind) as caught:
        occl.compile(source, **options)
    assert text in str(caught.value)


def test_warnings():
    with pytest.warns(occl.CompileWarning, match="W100"):
        plan = occl.compile(occl.algorithms("allreduce/one_shot"), ranks=4, direct=True)
    assert plan.warnings[0].severity == "warning"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        occl.compile(STAR, ranks=4)


def test_a_missing_compiler_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("OCCL_COMPILER", str(tmp_path / "occlc"))
    with pytest.raises(occl.LibraryError, match="OCCL_COMPILER is .* no file"):
        occl.compile(STAR)
    (tmp_path / "occlc").write_text("#!/bin/sh\necho 'error while loading shared libraries: "
                                    "libexpat.so.1: cannot open' >&2\nexit 127\n")
    (tmp_path / "occlc").chmod(0o755)
    with pytest.raises(occl.LibraryError, match="libexpat.so.1: cannot open.*It needs"):
        occl.compile(STAR)


@pytest.mark.parametrize("suffix", [".plan.json", ".plan.cbor"])
def test_files(tmp_path, suffix):
    plan = occl.compile(STAR)
    path = plan.save(tmp_path / ("star" + suffix))
    subprocess.run([_occlc.executable(), "verify", path], check=True, capture_output=True)
    loaded = occl.load(path)
    assert loaded.document == plan.document
    other = loaded.save(tmp_path / "other.plan.json")
    assert occl.load(other).document == plan.document
    assert loaded.explain(1) == plan.explain(1)
    for same in (copy.copy(plan), pickle.loads(pickle.dumps(plan))):
        assert same.document == plan.document


def test_json_may_begin_with_blanks(tmp_path):
    plan = occl.compile(STAR)
    path = tmp_path / "blanks.plan.json"
    path.write_bytes(b" \r\n\t" + plan.data)
    loaded = occl.load(path)
    assert loaded.document == plan.document
    assert loaded.explain(1) == plan.explain(1)


def test_programs_are_utf8_in_every_locale(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(r'''import locale, sys
import occl
assert locale.getpreferredencoding(False).lower() not in ("utf-8", "utf8")
text = "// \u00e9\n" + sys.argv[1]
plan = occl.compile(text)
assert occl.format(text).startswith("// \u00e9\n")
try:
    occl.compile(text.replace("output[0][0]", "output[0][9] /* \u00e9 */"))
except occl.CompileError as error:
    assert "/* \u00e9 */" in str(error), ascii(str(error))
xml = plan.to_msccl(sys.argv[2])
assert occl.from_msccl(xml.replace("<algo ", "<!-- \u00e9 --><algo ")).ranks == plan.ranks
''')
    done = subprocess.run([sys.executable, script, STAR, tmp_path / "star.xml"], capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr


def test_cbor_is_that_of_the_compiler(tmp_path):
    plan = occl.compile(STAR, ranks=40)
    source = tmp_path / "source.coll"
    source.write_text(STAR)
    subprocess.run([_occlc.executable(), "compile", source, "-D", "ranks=40", "-o",
                    tmp_path / "star.cbor"], check=True)
    assert cbor.encode(plan.document) == (tmp_path / "star.cbor").read_bytes()


@pytest.mark.parametrize("data, text", [
    (b"", "cut off"), (b"{", "JSON"), (b"[]", "cut off"), (b"\xa1", "cut off"), (b"{}", "numRanks"),
    (b"\x9b" + b"\xff" * 8, "cut off"), (b"\x81" * 100, "nested"), (b"\xff", "kind")])
def test_files_that_are_no_plans(tmp_path, data, text):
    path = tmp_path / "x.plan.json"
    path.write_bytes(data)
    with pytest.raises(occl.InvalidPlanError):
        occl.load(path)
    with pytest.raises(occl.InvalidPlanError, match=text):
        occl.Plan(data).ranks


def test_a_plan_that_is_wrong_is_refused(tmp_path):
    plan = occl.compile(STAR)
    path = tmp_path / "wrong.plan.json"
    path.write_text(plan.data.decode().replace('"depth": 2', '"depth": 0'))
    with pytest.raises(occl.InvalidPlanError, match="depth"):
        occl.load(path)
    with pytest.raises(occl.InvalidPlanError, match="nowhere"):
        occl.load(tmp_path / "nowhere.plan.json")


def test_explain_and_predict(tmp_path):
    plan = occl.compile(occl.algorithms("allreduce/ring"), ranks=8)
    assert "rank 3:" in plan.explain(3, bytes="1MiB") and "rank 2:" not in plan.explain(3)
    small, large = plan.predict("1KiB"), plan.predict(64 << 20)
    assert 0 < small.seconds < large.seconds < 10 and large.bound and "predicted" in str(large)
    assert plan.predict("1MiB", topology=occl.topologies("h200")).seconds > 0
    assert plan.trace(tmp_path / "x.json").stat().st_size > 0
    with pytest.raises(IndexError, match="no rank 8"):
        plan.explain(8)
    with pytest.raises(TypeError, match="rank is a str; it is an int"):
        plan.explain("8")
    with pytest.raises(TypeError, match="define is a str"):
        plan.predict("1MiB", topology=occl.topologies("h200"), define="nodes=2")
    with pytest.raises(occl.CompileError, match="bytes"):
        plan.predict("many")


def test_msccl_out_and_in(tmp_path):
    plan = occl.compile(occl.algorithms("allreduce/ring"), ranks=4)
    text = plan.to_msccl(tmp_path / "ring.xml")
    for source in (text, tmp_path / "ring.xml", str(tmp_path / "ring.xml")):
        back = occl.from_msccl(source)
        assert (back.collective, back.ranks) == ("allreduce", 4)
    with pytest.raises(occl.CompileError, match="algorithm.xml:1:"):
        occl.from_msccl("<algo/>")
    with pytest.raises(TypeError, match="the source is a int"):
        occl.from_msccl(5)


def test_format():
    text = "algorithm   star(ranks:int=4) implements allreduce( ranks , chunks=1 ){}\n"
    laid_out = occl.format(text)
    assert laid_out.startswith("algorithm star(ranks: int = 4) implements allreduce(ranks, chunks")
    assert occl.format(laid_out) == laid_out
    with pytest.raises(occl.CompileError):
        occl.format("algorithm {")
