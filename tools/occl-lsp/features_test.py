#!/usr/bin/env python3
"""occl-lsp, asked about files of the library and buffers that are not saved: hover, definitions, symbols, completion, plans.

Arguments: occl-lsp, occlc, with which plans are compared."""

import os
import re
import subprocess
import sys
import unittest

from lsp_case import LIBRARY, OCCLC, RING, TREES, WithServer, read
from lsp_client import ServerError, mark, uri_of


class Reading(WithServer):
    """What tells about the text."""

    def test_hover(self):
        self.open(RING)
        for context, words in {
            "let ^r": ["let r: int", "Here: `1, 2, 3, 0`"],
            "^ranks: int": ["parameter ranks: int", "`4`"],
            "var ^c": ["var c: chunk", "input[0][0]", "output[1][0]"],
            "for ^hop in 1": ["loop variable hop: int", "`1, 2, 3`"],
            "^input[r][i]": ["A place: chunk `i` of `input` on rank `r`", "input[1][0], input[2][0]"],
            "all^reduce": ["collective allreduce(ranks: int, chunks: int)", "Every rank gets the reduction"],
            "^reduce(c": ["Reduces chunks from left to right"],
            "c.^copy": ["Writes a chunk to a place"],
            ".^into": ["Writes the result of a reduction"],
            "ranks: ^int": ["64 bits, signed"],
            "^for i": ["Nested loops"],
            "(i + hop) ^% ranks": ["(i + hop) % ranks: int"],
            "algorithm ^ring": ["algorithm ring(ranks: int = 4) implements allreduce(ranks, chunks = ranks)", "A ring: \u00e9"],
        }.items():
            text = self.hover(RING, context)
            for word in words:
                self.assertIn(word, text, context)
        self.assertEqual(self.hover(RING, "// A ^ring"), "")

    def test_definition(self):
        text = read(TREES)
        self.uri = uri_of(TREES)
        self.open(text)
        (found,) = self.client.at("definition", self.uri, mark(text, "= left_^child(x)"))
        trees = "algorithms/common/trees.coll"
        self.assertEqual((found["uri"], found["range"]["start"]), (uri_of(os.path.realpath(trees)) if found["uri"] != uri_of(trees)
                                                                   else uri_of(trees), mark(read(trees), "function ^left_child")))
        (found,) = self.client.at("definition", self.uri, mark(text, "../com^mon"))
        self.assertEqual(found["range"]["start"], {"line": 0, "character": 0})
        (found,) = self.client.at("definition", self.uri, mark(text, "return hand_^out") if "return hand_out" in text else mark(text, "hand_^out(child"))
        self.assertEqual((found["uri"], found["range"]["start"]), (self.uri, mark(text, "function ^hand_out")))
        self.assertEqual(self.client.at("definition", self.uri, mark(text, "all^reduce(ranks")), [], "of the language itself")
        uses = self.client.at("references", self.uri, mark(text, "function ^rank_at"), context={"includeDeclaration": True})
        self.assertEqual(len(uses), text.count("rank_at("))
        for use in uses:
            self.assertEqual(text.split("\n")[use["range"]["start"]["line"]][use["range"]["start"]["character"]:][:8], "rank_at(")

    def test_symbols(self):
        text = "scratch"
        symbols = {}
        for path in LIBRARY:
            self.client.open(uri_of(path), read(path))
            for symbol in self.client.call("textDocument/documentSymbol", {"textDocument": {"uri": uri_of(path)}}):
                symbols[symbol["name"]] = symbol
        self.assertGreater(len(symbols), len(LIBRARY) // 2)
        tree = symbols["double_binary_tree"]
        self.assertEqual([child["name"] for child in tree["children"]], ["ranks", "chunks"])
        self.assertIn("implements allreduce", tree["detail"])
        text = RING.replace("  for i", "  scratch s[2];\n  let n = ranks;\n  for i")
        self.open(text[:text.index("c = reduce")])  # in the midst of typing
        (ring,) = self.client.call("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}})
        self.assertEqual([child["name"] for child in ring["children"]], ["ranks", "s", "n"])

    def test_signature(self):
        text = "function f(a: int, b: [int]) -> int { return min(a, f(1, [2, )); }\n" + RING
        self.open(text)
        for context, label, active in (("f(1, ^[", "f(a: int, b: [int])", 1), ("min(^a", "min(a, b, ...) -> int", 0),
                                       ("allreduce(ranks, ^chunks", "allreduce(ranks: int, chunks: int)", 1),
                                       ("copy(^out", "chunk.copy(place, hints...) -> chunk", 0)):
            answer = self.client.at("signatureHelp", self.uri, mark(text, context))
            self.assertEqual((answer["signatures"][0]["label"], answer["activeParameter"]), (label, active), context)
        self.assertIsNone(self.client.at("signatureHelp", self.uri, mark(text, "var ^c")))


class Completion(WithServer):
    BODY = "algorithm a(ranks: int = 4, list: [int] = [1]) implements allreduce(ranks, 1) {\n  let n = 2;\n  scratch s[2];\n"

    def test_members(self):
        for written, there, missing in (("input[0][0].^", {"rank", "index", "count", "copy", "has", "origin"}, {"length", "n"}),
                                        ("list.^", {"length"}, {"rank", "copy"}), ("input[0][0].origin.^", {"rank", "index"}, {"count", "copy"}),
                                        ("for r in list.^", {"length"}, {"copy"}), ("let c = reduce(input[0][0], s[1][0].^", {"count"}, {"length"}),
                                        ("reduce(input[0][0]).^", {"into"}, {"copy"}), ("topology.^", {"ranks", "has_link"}, {"copy"}),
                                        ("s[0][0].co^", {"copy", "count"}, {"length"})):
            labels = self.labels(self.BODY + "  " + written.replace("^", "") + "\n}\n", written)
            self.assertTrue(there <= labels, (written, there - labels))
            self.assertFalse(missing & labels, (written, labels))

    def test_names_and_words(self):
        text = self.BODY + "  for r in 0..ranks {\n    let inner = r;\n    in\n  }\n  \n}\n"
        labels = self.labels(text, "    in^\n")
        self.assertTrue({"n", "s", "ranks", "list", "r", "inner", "input", "reduce", "min", "let", "for", "aggregate"} <= labels)
        labels = self.labels(text, "  }\n  ^\n")
        self.assertFalse({"r", "inner", "implements", "algorithm", "post"} & labels)
        labels = self.labels("f", "f^")
        self.assertEqual(labels, {"algorithm", "collective", "function", "import", "topology"})

    def test_places_of_the_grammar(self):
        for written, there in (("algorithm a() implements ^", {"allreduce", "alltoallv", "scan"}),
                               ("algorithm a(n: ^", {"int", "bool", "location"}),
                               ("algorithm a() implements allreduce(2, 1) ^", {"modes", "protocol", "instances"}),
                               ("algorithm a() implements allreduce(2, 1) modes out_of_place, ^", {"in_place", "out_of_place"}),
                               ("algorithm a() implements allreduce(2, 1) protocol ^", {"simple", "ll", "ll128"}),
                               (self.BODY + "  input[0][0].copy(s[0][0], ^", {"channel", "send", "recv", "parallelize"}),
                               (self.BODY + "  threadblock(^", {"send", "recv"}),
                               (self.BODY + "  when ^", {"bytes"}),
                               ("collective c(ranks: int) {\n  ^", {"input", "output", "part", "post", "pre", "inplace"}),
                               ("topology t() {\n  ^", {"node", "link", "switch", "nic", "machine"})):
            labels = self.labels(written.replace("^", ""), written)
            self.assertTrue(there <= labels, (written, labels))
        self.assertEqual(self.labels(self.BODY + "  // li", "// li^"), set(), "in a comment")
        self.assertEqual(self.labels(self.BODY + '  assert true, "li', '"li^'), set(), "in a string")

    def test_imports(self):
        self.uri = uri_of("algorithms/allreduce/new.coll")
        self.assertTrue({"ring.coll", "one_shot.coll"} <= self.labels('import "', 'import "^'))
        self.assertTrue({"common/", "allreduce/"} <= self.labels('import "../', 'import "../^'))
        self.assertTrue({"trees.coll"} <= self.labels('import "../common/tr', 'import "../common/tr^'))


class Plans(WithServer):
    def plan(self, **more) -> str:
        return self.client.call("workspace/executeCommand", {"command": "occl.plan", "arguments": [{"textDocument": {"uri": self.uri}, **more}]})

    def test_the_same_as_occlc(self):
        for path in LIBRARY:
            text = read(path)
            if not re.search(r"^algorithm", text, re.M):
                continue
            self.uri = uri_of(path)
            self.client.open(self.uri, text)
            compiled = subprocess.run([OCCLC, "compile", path, "-o", f"{self.folder}/p.json", "--stats"], capture_output=True, text=True, check=True)
            explained = subprocess.run([OCCLC, "explain", f"{self.folder}/p.json"], capture_output=True, text=True, check=True)
            shown = self.plan()
            self.assertIn(compiled.stderr.strip(), shown, path)
            self.assertIn(explained.stdout if len(explained.stdout) < 1 << 19 else explained.stdout[:1 << 19], shown, path)

    def test_of_what_is_not_saved(self):
        self.open(RING)
        self.assertFalse(os.path.exists(f"{self.folder}/test.coll"))
        self.assertIn("ring: 4 ranks", self.plan())
        self.assertIn("ring: 6 ranks", self.plan(defines=["ranks=6"], bytes=4096, rank=5))
        self.client.change(self.uri, {"text": RING.replace("int = 4", "int = 3") + RING.replace("ring", "other")})
        self.assertIn("ring: 3 ranks", self.plan())
        self.assertIn("other: 4 ranks", self.plan(algorithm="other"))
        self.assertIn("other: 4 ranks", self.plan(position={"line": 15, "character": 3}))

    def test_versions(self):
        self.open(RING.replace("  for i", "  when bytes in 0..64KiB protocol ll {} when bytes in 64KiB.. {}\n  for i", 1))
        shown = self.plan(rank=0)
        self.assertIn("Version 1 of 2", shown)
        self.assertIn("Version 2 of 2", shown)
        self.assertNotIn("Version", self.plan(rank=0, bytes=1024))

    def test_no_plan(self):
        self.open(RING.replace("c.copy", "c.cpy"))
        with self.assertRaises(ServerError) as refused:
            self.plan()
        self.assertEqual(refused.exception.code, -32803)
        self.assertIn("test.coll:9:51: error: there is no operation 'cpy'", str(refused.exception))
        self.open(RING)
        with self.assertRaises(ServerError) as refused:
            self.plan(algorithm="none")
        self.assertIn("no algorithm 'none'", str(refused.exception))
        for params in ({"defines": ["ranks=0"]}, {"rank": 4}, {"bytes": -1}, {"defines": ["n=1"]}):
            with self.assertRaises(ServerError):
                self.plan(**params)


class Configured(WithServer):
    options = {"importPaths": [os.path.abspath("algorithms")], "defines": ["ranks=6", "gpus=4", "unknown=1"],
               "topology": os.path.abspath("topologies/h200.topo")}

    def test_settings(self):
        text = ('import "common/trees.coll";\nalgorithm a(ranks: int = topology.ranks) implements broadcast(ranks, 1) {\n'
                "  for r in 1..ranks { input[0][0].copy(output[r][0]); }\n  input[0][0].copy(output[0][0]);\n  assert top(4) == 4;\n}\n")
        codes = [one["code"] for one in self.open(text)]
        self.assertEqual(codes, ["E082"], "six ranks, and a topology of four")

    def test_plan(self):
        """It is for the topology of the settings, with its parameters."""
        self.open("algorithm a(n: int = topology.ranks) implements broadcast(n, 1) {\n"
                  "  for r in 1..n { input[0][0].copy(output[r][0]); }\n  input[0][0].copy(output[0][0]);\n}\n")
        shown = self.client.call("workspace/executeCommand", {"command": "occl.plan", "arguments": [{"textDocument": {"uri": self.uri}}]})
        self.assertIn("a: 4 ranks", shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
