#!/usr/bin/env python3
"""occl-lsp as editors use it: the protocol, diagnostics, edits, and whatever a client sends as text. features_test.py asks it.

Arguments: occl-lsp, occlc. Where occlc says the same in another way, the two are compared."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from lsp_case import LARGEST, LIBRARY, LSP, OCCLC, RING, TREES, WithServer, read
from lsp_client import Client, ServerError, mark, position, uri_of

SEED = int(os.environ.get("OCCL_TEST_SEED", random.SystemRandom().randrange(1 << 32)))


class Protocol(unittest.TestCase):
    """What is wrong is answered, and the next message is understood."""

    def setUp(self):
        self.client = Client(LSP, initialize=False)

    def error(self, message: dict) -> int:
        self.client.send(message)
        return self.client.receive()["error"]["code"]

    def raw(self, data: bytes) -> dict:
        self.client.send_bytes(data)
        return self.client.receive()

    def initialize(self):
        self.client.call("initialize", {"capabilities": {}})

    def test_order(self):
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {}}), -32002)
        self.client.notify("textDocument/didOpen", {})  # is dropped
        self.initialize()
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {"capabilities": {}}}), -32600)
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 3, "method": "textDocument/unknown"}), -32601)
        self.client.notify("textDocument/unknown", None)  # no answer
        self.assertIsNone(self.client.call("shutdown"))
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 4, "method": "textDocument/hover", "params": {}}), -32600)
        self.client.notify("exit", None)
        self.assertEqual(self.client.end(), 0)

    def test_wrong_parameters(self):
        self.assertEqual(self.error({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "capabilities": {}, "initializationOptions": {"importPaths": 7}}}), -32602)
        document = {"uri": "file:///nowhere.coll"}
        for params in (None, 7, {}, {"textDocument": document}, {"textDocument": document, "position": {"line": "0"}},
                       {"textDocument": document, "position": {"line": 0, "character": 0}},  # is not open
                       {"textDocument": {"uri": "untitled:1"}, "position": {"line": 0, "character": 0}}):
            self.assertEqual(self.error({"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": params}), -32602)
        for command, arguments in (("occl.unknown", []), ("occl.plan", []), ("occl.plan", [{"textDocument": document}])):
            self.assertEqual(self.error({"jsonrpc": "2.0", "id": 6, "method": "workspace/executeCommand",
                                         "params": {"command": command, "arguments": arguments}}), -32602)
        self.client.notify("textDocument/didChange", {"textDocument": {**document, "version": 2}, "contentChanges": [{"text": ""}]})
        self.client.call("shutdown")
        self.client.end()

    def test_no_messages(self):
        self.initialize()
        for text, code in ((b"{", -32700), (b"", -32700), (b"\xff\xfe", -32700), (b"[" * 1000000, -32700), (b'{"a":' * 100000, -32700),
                           (b"[]", -32600), (b"7", -32600), (b'{"id": 1}', -32600), (b'{"jsonrpc": "1.0", "id": 1, "method": "a"}', -32600),
                           (b'{"jsonrpc": "2.0", "id": 1}', -32600), (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600)):
            self.client.send_text(text)
            self.assertEqual(self.client.receive()["error"]["code"], code, text[:40])
        self.client.send({"jsonrpc": "2.0", "id": 9, "result": None})  # an answer to nothing
        for header in (b"\r\n", b"Content-Length: x\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"A: " + b"b" * 100000 + b"\n\n"):
            self.assertEqual(self.raw(header)["error"]["code"], -32700, header[:40])
        too_large = b"Content-Length: 140000000\r\n\r\n" + b" " * 140000000
        self.assertEqual(self.raw(too_large)["error"]["code"], -32600)
        text = json.dumps({"jsonrpc": "2.0", "id": "a name", "method": "shutdown"}).encode()
        answer = self.raw(b"content-type: utf-8\r\nCONTENT-LENGTH:%d\r\n\r\n" % len(text) + text)
        self.assertEqual((answer["id"], answer["result"]), ("a name", None))
        self.client.end()

    def test_messages_behind_a_bad_header(self):
        """What follows the header is no header, whatever it is; the next message is understood."""
        self.initialize()
        for lost in (b"{}", b'{"a": "Content-Length: 3"}', b'{\n  "Content-Length: 5": 1\n}', b"[" + b"1," * 50000, b"a\nContent-Type: b\n\n{}"):
            self.client.send_bytes(b"Content-Length: x\r\n\r\n" + lost)
            self.client.send({"jsonrpc": "2.0", "id": 77, "method": "textDocument/unknown"})
            answers = [self.client.receive()]
            while answers[-1]["id"] is None:
                answers.append(self.client.receive())
            self.assertEqual({one["error"]["code"] for one in answers[:-1]}, {-32700}, lost[:40])
            self.assertEqual((answers[-1]["id"], answers[-1]["error"]["code"]), (77, -32601), lost[:40])
        text = json.dumps({"jsonrpc": "2.0", "id": 78, "method": "textDocument/unknown"}).encode()
        self.assertEqual(self.raw(b"Content-Length: \t%d \t\r\n\r\n" % len(text) + text)["id"], 78)
        self.assertIsNone(self.client.call("shutdown"))
        self.client.end()

    def test_files_on_disk(self):
        """A client that can tell of changes is asked to."""
        self.client.end()
        self.client = Client(LSP, capabilities={"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}})
        asked = self.client.receive()
        (registration,) = asked["params"]["registrations"]
        self.assertEqual((asked["method"], registration["method"]), ("client/registerCapability", "workspace/didChangeWatchedFiles"))
        self.client.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
        with tempfile.TemporaryDirectory() as folder:
            uri = uri_of(f"{folder}/test.coll")
            self.client.open(uri, 'import "other.coll";\n')
            self.assertEqual([one["code"] for one in self.client.diagnostics(uri)], ["E017"])
            pathlib.Path(f"{folder}/other.coll").write_text("function f() {}\n", encoding="utf-8")
            self.client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri_of(f"{folder}/other.coll"), "type": 1}]})
            self.client.until(uri, lambda params: [one["code"] for one in params["diagnostics"]] != ["E017"])
        self.assertEqual(self.client.stop(), 0)

    def test_ends(self):
        self.initialize()
        self.client.notify("exit", None)
        self.assertEqual(self.client.end(), 1, "exit without shutdown")
        for broken_off in (b"", b"Content-Length: 5", b"Content-Length: 500\r\n\r\n{}"):
            self.client = Client(LSP, initialize=False)
            self.client.send_bytes(broken_off)
            self.assertEqual(self.client.end(), 1)

    def test_help(self):
        done = subprocess.run([LSP, "--help"], capture_output=True, text=True, check=True)
        self.assertIn("docs/editors.md", done.stdout)
        self.assertEqual(subprocess.run([LSP, "--unknown"], capture_output=True, check=False).returncode, 2)


class Diagnostics(WithServer):
    def test_library(self):
        for path in LIBRARY:
            self.client.open(uri_of(path), read(path))
            self.assertEqual(self.client.diagnostics(uri_of(path)), [], path)

    def test_while_typing(self):
        self.assertEqual(self.open(RING), [])
        place = mark(RING, "c.copy^(")
        self.client.change(self.uri, {"range": {"start": place, "end": place}, "text": "x"})
        (error,) = self.client.diagnostics(self.uri)
        self.assertEqual((error["severity"], error["code"], error["source"]), (1, "E010", "occl"))
        end = {**place, "character": place["character"] + 1}
        self.assertEqual(error["range"], {"start": mark(RING, "c.^copy("), "end": end})
        self.client.change(self.uri, {"range": {"start": place, "end": end}, "text": ""})
        self.assertEqual(self.client.diagnostics(self.uri), [])
        self.client.close(self.uri)
        self.client.call("workspace/executeCommand", {"command": "occl.plan", "arguments": [
            {"textDocument": {"uri": self.open_other()}, "rank": 0}]})
        self.assertEqual(self.client.published[self.uri], {"uri": self.uri, "diagnostics": []})

    def open_other(self) -> str:
        self.client.open(uri_of(TREES), read(TREES))
        return uri_of(TREES)

    def test_notes_are_related_information(self):
        text = RING.replace("var c = input[i][i];", "var c = input[i][i]; input[i][i].copy(output[i][i]); output[0][0].copy(output[i][i]);")
        stale = next(one for one in self.open(text) if one["code"] == "E044")
        related = stale["relatedInformation"][0]
        self.assertIn("overwritten here", related["message"])
        self.assertEqual(related["location"]["uri"], self.uri)

    def test_diagnostics_that_are_no_mistakes(self):
        self.assertEqual([(one["code"], one["severity"]) for one in self.open(RING.replace("int = 4", "int"))], [("E020", 3)])
        self.open(RING.replace("int = 4", "int = 400"))
        self.assertEqual([(one["code"], one["severity"]) for one in self.client.diagnostics(self.uri)], [("E034", 3)])
        unused = self.open(RING.replace("var c", "let unused = 1; var c"))
        self.assertEqual([(one["code"], one["severity"], one["tags"]) for one in unused], [("W001", 2, [1])])

    def test_a_file_without_algorithm(self):
        self.assertEqual(self.open("function f(n: int) -> int { return n; }\n"), [])
        self.assertEqual(self.open(""), [])

    def test_many_algorithms(self):
        codes = [(one["code"], one["severity"], one["range"]["start"]["line"])
                 for one in self.open("algorithm a() implements allreduce(1, 1) { assert false; }\n" * 18)]
        self.assertEqual({code for code, _, _ in codes}, {"E011"}, "of one name")
        codes = [(one["code"], one["severity"], one["range"]["start"]["line"]) for one in self.open(
            "".join(f"algorithm a{i}() implements allreduce(1, 1) {{ assert false; }}\n" for i in range(18)))]
        self.assertEqual(codes, [*(("E030", 1, line) for line in range(16)), ("E034", 3, 16)])

    def test_a_topology_and_an_algorithm(self):
        codes = [one["code"] for one in self.open("topology t() { node 0; }\nalgorithm a() implements allreduce(1, 1) { assert false; }\n")]
        self.assertEqual(codes[-1], "E030")

    def test_topologies(self):
        for path in sorted(pathlib.Path("topologies").rglob("*.topo")):
            self.client.open(uri_of(str(path)), read(str(path)))
            self.assertEqual(self.client.diagnostics(uri_of(str(path))), [], path)
        codes = [one["code"] for one in self.open("topology t() { node 2; link 0 -> 7 bandwidth 1 GB/s latency 1 us; }")]
        self.assertEqual(codes, ["E074"])

    def test_imports_that_are_not_saved(self):
        other = uri_of(f"{self.folder}/other.coll")
        text = 'import "other.coll";\n' + RING.replace("(i + hop) % ranks;", "next(i, hop, ranks);")
        self.assertEqual([one["code"] for one in self.open(text)], ["E017", "E010"])
        self.client.open(other, "function next(i: int, hop: int, n: int) -> int { return (i + hop) % n; }\n")
        self.client.until(self.uri, lambda params: params["diagnostics"] == [])  # without a change here
        # A mistake over there is shown at the import.
        self.client.change(other, {"text": "function next(i: int, hop: int, n: int) -> int { return wrong; }\n"})
        (error,) = self.client.until(self.uri, lambda params: params["diagnostics"] != [])
        self.assertEqual((error["code"], error["range"]["start"]["line"]), ("E010", 0))
        self.assertEqual(error["relatedInformation"][0]["location"]["uri"], other)
        self.client.close(other)
        self.client.until(self.uri, lambda params: [one["code"] for one in params["diagnostics"]] == ["E017", "E010"])

    def test_imports_that_come_before_others(self):
        """A file beside the document hides one of the import paths as soon as there is one, and no longer."""
        os.mkdir(f"{self.folder}/library")
        pathlib.Path(f"{self.folder}/library/p.coll").write_text("function p() -> int { return 1; }\n", encoding="utf-8")
        self.client.stop()
        self.client = Client(LSP, {"importPaths": [f"{self.folder}/library"]})
        beside = uri_of(f"{self.folder}/p.coll")
        self.assertEqual(self.open('import "p.coll";\nfunction f() -> int { return p(); }\n'), [])
        self.client.open(beside, "function q() -> int { return 1; }\n")
        self.client.until(self.uri, lambda params: [one["code"] for one in params["diagnostics"]] == ["E010"])
        self.client.close(beside)
        self.client.until(self.uri, lambda params: params["diagnostics"] == [])

    def test_one_file_under_two_addresses(self):
        """Each document is what was sent for it."""
        pathlib.Path(f"{self.folder}/test.coll").write_text("", encoding="utf-8")
        os.symlink(f"{self.folder}/test.coll", f"{self.folder}/link.coll")
        link = uri_of(f"{self.folder}/link.coll")
        text = "\n\nfunction f() -> int { return g(); }\nfunction g() -> int { return wrong; }\n"
        self.open(text)
        self.client.open(link, "function f() -> int { return 1; }\n")
        self.assertEqual(self.client.diagnostics(link), [])
        for _ in range(2):
            (found,) = self.client.at("definition", self.uri, mark(text, "return ^g"))
            self.assertEqual((found["uri"], found["range"]["start"]), (self.uri, mark(text, "function ^g")))
            self.client.close(link)
        importing = uri_of(f"{self.folder}/importing.coll")
        self.client.open(importing, 'import "link.coll";\n')
        self.assertEqual([one["code"] for one in self.client.diagnostics(importing)], ["E010"], "what is open, and not on disk")

    def test_fixes(self):
        text = RING.replace("for i in 0..ranks {", "for i in 0..rnks {")
        self.open(text)
        place = mark(text, "rn^ks")
        (action,) = self.client.call("textDocument/codeAction", {
            "textDocument": {"uri": self.uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}})
        self.assertEqual(action["edit"]["changes"][self.uri], [
            {"range": {"start": mark(text, "^rnks"), "end": mark(text, "rnks^")}, "newText": "ranks"}])

    @staticmethod
    def place(error: dict, path: str) -> tuple[int, int]:
        """Character and line; of what is elsewhere, as of a collective that all programs have, those of the note that leads there."""
        here = [one["range"] for one in [error, *error.get("notes", [])] if one.get("range", {}).get("file") == path and "line" in one["range"]]
        return (here[0]["column"] - 1, here[0]["line"] - 1) if here else (0, 0)

    def test_the_same_as_occlc(self):
        """Of library files with a random token left out, repeated or replaced."""
        numbers = random.Random(SEED)
        shutil.copytree("algorithms", f"{self.folder}/algorithms", dirs_exist_ok=True)
        found = 0
        for _ in range(60):
            path = numbers.choice([path for path in LIBRARY if "/common/" not in path])
            text = read(path)
            tokens = list(re.finditer(r"\w+|[^\w\s]", text))
            token, other = numbers.choice(tokens), numbers.choice(tokens)
            text = text[:token.start()] + numbers.choice(["", token[0] + " " + token[0], other[0]]) + text[token.end():]
            copy = f"{self.folder}/{path}"
            pathlib.Path(copy).write_text(text, encoding="utf-8")
            done = subprocess.run([OCCLC, "check", copy, "--diag-format=json"], capture_output=True, text=True, check=False)
            expected = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
            if any(one["code"] in ("E018", "E034") for one in expected):
                continue  # which algorithm; the end of the budget
            self.client.open(uri_of(copy), text)
            got = self.client.diagnostics(uri_of(copy))
            expected = [(one["code"], *self.place(one, copy)) for one in expected if not re.match("[EW]1", one["code"])]
            self.assertEqual([(one["code"], *one["range"]["start"].values()) for one in got], expected, text)
            found += bool(got)
        self.assertGreater(found, 10)


class Editing(WithServer):
    """What changes the text."""

    def test_random_edits(self):
        numbers = random.Random(SEED)
        pieces = ["", "a", "\n", "\r\n", "{", "}", ";", "\u00e9", "\u20ac", "\U0001f600", "// \U0001f680 c\n", "let x = 1;", "input[0][0]", " "]
        for path in (TREES, "algorithms/allreduce/ring.coll", ""):
            text = "\n".join(line + " // \u00fc \U0001f600" for line in read(path).split("\n")) if path else RING
            self.open(text)
            for _ in range(12):
                changes = []
                for _ in range(numbers.randrange(1, 4)):
                    begin = numbers.randrange(len(text) + 1)
                    end = min(len(text), begin + numbers.choice([0, 0, 1, 5, 40]))
                    begin, end = (begin - 1, end) if text[begin - 1:begin] == "\r" else (begin, end)
                    end += text[end - 1:end + 1] == "\r\n"
                    piece = numbers.choice(pieces)
                    changes.append({"range": {"start": position(text, begin), "end": position(text, end)}, "text": piece})
                    text = text[:begin] + piece + text[end:]
                self.client.change(self.uri, *changes)
                self.compare(text, numbers)

    def everything(self, text: str, places: list[dict]) -> list:
        return [self.client.diagnostics(self.uri), self.client.call("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}}),
                [self.client.at(method, self.uri, place, context={"includeDeclaration": True, "triggerKind": 1})
                 for place in places for method in ("hover", "definition", "references", "completion", "signatureHelp")]]

    def compare(self, text: str, numbers: random.Random) -> None:
        """What is said of the edited document is what is said of one that is opened with its text."""
        places = [position(text, numbers.randrange(len(text) + 1)) for _ in range(6)]
        edited = self.everything(text, places)
        self.client.close(self.uri)
        self.open(text)
        self.assertEqual(edited, self.everything(text, places), text)

    def test_formatting(self):
        numbers = random.Random(SEED)
        for path in LIBRARY:
            text = "".join(char + " " * numbers.randrange(3) if char in ";{ " else char for char in read(path))
            expected = subprocess.run([OCCLC, "fmt"], input=text, capture_output=True, text=True, check=True).stdout
            self.open(text)
            edits = self.format()
            self.assertEqual(edits[0]["newText"] if edits else text, expected, path)
            if edits:
                self.assertEqual(edits[0]["range"], {"start": position(text, 0), "end": position(text, len(text))})
            self.open(expected)
            self.assertEqual(self.format(), [])
        self.open("algorithm (")
        self.assertEqual(self.format(), [], "with mistakes it stays as it is")

    def format(self) -> list[dict]:
        return self.client.call("textDocument/formatting", {"textDocument": {"uri": self.uri}, "options": {"tabSize": 8, "insertSpaces": False}})

    def rename(self, context: str, name: str):
        return self.client.at("rename", self.uri, mark(RING, context), newName=name)["changes"][self.uri]

    def test_rename(self):
        self.open(RING)
        edits = self.rename("let ^r", "target")
        self.assertEqual(len(edits), 3)
        lines = RING.split("\n")
        for edit in edits:
            line, begin, end = edit["range"]["start"]["line"], edit["range"]["start"]["character"], edit["range"]["end"]["character"]
            self.assertEqual(lines[line][begin:end], "r")
            self.assertEqual(edit["newText"], "target")
        for context, name in (("let ^r", "hop"), ("let ^r", "for"), ("let ^r", "a b"), ("let ^r", ""), ("let ^r", "i"),
                              ("algorithm ^ring", "other"), ("^ranks: int", "n"), ("^allreduce", "mine"), ("+ hop) ^%", "x")):
            with self.assertRaises(ServerError) as refused:
                self.rename(context, name)
            self.assertEqual(refused.exception.code, -32803, (context, name))


class Survival(WithServer):
    """Whatever a client sends as text."""

    def alive(self):
        self.client.close(self.uri)
        self.assertEqual(self.open(RING), [])

    def test_large(self):
        self.open("// " + "\U0001f600" * 500000 + "\n" + RING)
        self.assertEqual(self.codes(), [])
        self.open(RING + "function f() {}\n" * 50000)
        self.assertEqual(set(self.codes()), {"E011"})
        self.open(" " * (17 << 20))
        self.assertEqual(self.codes(), ["E001"])
        self.alive()

    def test_long_lists(self):
        """Places of one long line, and more names than anybody reads: time and memory are bounded."""
        text = "algorithm a(ranks: int = 2) implements allreduce(ranks, 1) { " + "assert ranks == ranks; " * 20000 + "}"
        self.open(text)
        began = time.monotonic()
        uses = self.client.at("references", self.uri, mark(text, "a(^ranks"), context={"includeDeclaration": True})
        self.assertEqual(len(uses), 5000)
        self.assertEqual(uses[-1]["range"]["start"]["character"], [one.start() for one in re.finditer("ranks", text)][4999])
        self.assertLess(time.monotonic() - began, 10)
        with self.assertRaises(ServerError):
            self.client.at("rename", self.uri, mark(text, "a(^ranks"), newName="n")
        text = "algorithm a() implements allreduce(1, 1) {\n" + "".join(f"let v{i} = {i};\n" for i in range(20000)) + "}\n"
        self.open(text)
        (symbol,) = self.client.call("textDocument/documentSymbol", {"textDocument": {"uri": self.uri}})
        self.assertEqual(len(symbol["children"]), 5000)
        found = self.client.at("completion", self.uri, position(text, len(text) - 2))
        self.assertEqual((len(found["items"]), found["isIncomplete"]), (5000, True))
        self.alive()

    def test_many_changes(self):
        text = "// a line of a text that has a megabyte\n" * 25000
        self.open(text)
        places = [{"start": {"line": line, "character": 3}, "end": {"line": line, "character": 4}} for line in range(2000)]
        began = time.monotonic()
        self.client.change(self.uri, *({"range": place, "text": "the"} for place in places))
        self.assertEqual(self.codes(), [])
        self.assertLess(time.monotonic() - began, 5)
        self.alive()

    def test_many_statements(self):
        body = "    input[0][0].copy(output[0][0]);\n" * 20000
        self.open(f"algorithm a(ranks: int = 1) implements allreduce(ranks, 1) {{\n{body}}}\n")
        self.client.at("hover", self.uri, {"line": 15000, "character": 6})
        self.alive()

    def test_binary(self):
        numbers = random.Random(SEED)
        for _ in range(20):
            text = "".join(chr(numbers.choice([numbers.randrange(256), numbers.randrange(0xd800), 0, 0x1f600])) for _ in range(2000))
            self.open(text)
            for method in ("hover", "completion", "definition", "signatureHelp"):
                self.client.at(method, self.uri, position(text, numbers.randrange(2000)))
        self.client.send_text(json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {
            "uri": self.uri, "languageId": "coll", "version": 1, "text": "SURROGATE"}}}).encode().replace(b"SURROGATE", rb"\ud800 \u0000"))
        self.client.published.clear()
        self.client.versions[self.uri] = 1
        self.assertTrue(self.client.diagnostics(self.uri))
        pathlib.Path(f"{self.folder}/binary.coll").write_bytes(b"\xff\xfe\x00\x80function" * 100)
        self.open('import "binary.coll";\n')
        self.assertIn("E002", self.codes())
        with open(f"{self.folder}/".encode() + b"\xff.coll", "wb"):
            self.assertIn("\ufffd.coll", self.labels('import "', 'import "^'))
        self.alive()

    def test_nesting(self):
        for text in ("(" * 100000, "algorithm a() implements b(" + "[" * 100000, "/*" * 1000, "{" * 1000, "function f() -> " + "[" * 100000):
            self.open(text)
            self.client.at("completion", self.uri, position(text, len(text)))
            self.client.at("signatureHelp", self.uri, position(text, len(text)))
        self.alive()

    def test_places_that_do_not_exist(self):
        self.open(RING)
        for line in (-1, 0, 3, 10, 11, 10**9, 2**31 - 1):
            for character in (-1, 0, 1000, 2**31 - 1):
                place = {"line": line, "character": character}
                for method in ("hover", "definition", "completion", "signatureHelp"):
                    self.client.at(method, self.uri, place)
        self.client.change(self.uri, {"range": {"start": {"line": 99, "character": 9}, "end": {"line": -5, "character": -5}}, "text": RING})
        self.assertEqual(self.codes(), [])

    def test_programs_that_compute_for_long(self):
        """A bounded number of steps, whatever the program is."""
        for body in ("for a in 0..1000000000 { for b in 0..1000000000 { } }", "assert f(1000000) == 0;", "let l = [0..1000000];"):
            self.open("function f(n: int) -> int { return n == 0 ? 0 : f(n - 1) + f(n - 1); }\n"
                      "algorithm a(ranks: int = 2) implements allreduce(ranks, 1) {\n" + body + "\n}\n")
        self.open("algorithm a(ranks: int = 4096) implements alltoall(ranks, chunks = 4096 * 16) {\n}\n")
        self.alive()


class Latency(WithServer):
    def test_largest_file_while_typing(self):
        """Soon enough: bench/editor has the figure. The fastest of several changes, with twenty times the aim of 100 ms, leaves
        room for whatever else the machine does."""
        text, uri = read(LARGEST), uri_of(LARGEST)
        self.client.open(uri, text)
        self.assertEqual(self.client.diagnostics(uri), [])
        place = {"start": mark(text, "^input"), "end": mark(text, "i^nput")}
        times = []
        for letter in "xixixixixi":
            began = time.monotonic()
            self.client.change(uri, {"range": place, "text": letter})
            self.assertEqual(self.client.diagnostics(uri) != [], letter == "x")
            times.append(time.monotonic() - began)
        self.assertLess(min(times), 2, times)


if __name__ == "__main__":
    print(f"OCCL_TEST_SEED={SEED}", flush=True)
    unittest.main(argv=sys.argv[:1])
