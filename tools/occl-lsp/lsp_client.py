"""A client of the Language Server Protocol for tests: speaks to a server over its standard input and output."""

import json
import os
import pathlib
import queue
import subprocess
import threading

# Far more than any answer takes: whoever waits so long waits for ever.
PATIENCE = 60


class ServerError(Exception):
    """What the server answered instead of a result."""

    def __init__(self, error: dict):
        super().__init__(error["message"])
        self.code = error["code"]


class Client:
    """A server and the documents that are open in it. Diagnostics that come meanwhile are kept by URI."""

    def __init__(self, server: str, options: dict | None = None, initialize: bool = True, capabilities: dict | None = None):
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.messages: queue.Queue = queue.Queue()
        self.errors = b""
        self.threads = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._drain, daemon=True)]
        for thread in self.threads:
            thread.start()
        self.number = 0
        self.published: dict[str, dict] = {}
        self.versions: dict[str, int] = {}
        self.version = 0  # no two texts have the same
        if initialize:
            self.capabilities = self.call("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities or {},
                                                         "initializationOptions": options or {}})["capabilities"]
            self.notify("initialized", {})

    def _read(self) -> None:
        stream = self.process.stdout
        while line := stream.readline():
            length = 0
            while line.strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                line = stream.readline()
            self.messages.put(json.loads(stream.read(length)))
        self.messages.put(None)

    def _drain(self) -> None:
        self.errors = self.process.stderr.read()

    def send_bytes(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_text(self, text: bytes) -> None:
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(text) + text)

    def send(self, message: dict) -> None:
        self.send_text(json.dumps(message).encode())

    def receive(self) -> dict:
        """The next message that is no diagnostics."""
        while True:
            message = self.messages.get(timeout=PATIENCE)
            assert message is not None, f"the server has ended: {self.errors!r}"
            if message.get("method") != "textDocument/publishDiagnostics":
                return message
            self.published[message["params"]["uri"]] = message["params"]

    def notify(self, method: str, params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def call(self, method: str, params: object = None):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == self.number, answer
        if "error" in answer:
            raise ServerError(answer["error"])
        return answer["result"]

    def open(self, uri: str, text: str) -> None:
        version = self._next(uri)
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "coll", "version": version, "text": text}})

    def change(self, uri: str, *changes: dict) -> None:
        version = self._next(uri)
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)})

    def _next(self, uri: str) -> int:
        self.version += 1
        self.versions[uri] = self.version
        return self.version

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str) -> list[dict]:
        """Those of the version that was sent last."""
        return self.until(uri, lambda params: params.get("version") == self.versions[uri])

    def until(self, uri: str, holds) -> list[dict]:
        """Those of the document, as soon as what was published holds."""
        while not (uri in self.published and holds(self.published[uri])):
            message = self.messages.get(timeout=PATIENCE)
            assert message is not None, f"the server has ended: {self.errors!r}"
            assert message.get("method") == "textDocument/publishDiagnostics", message
            self.published[message["params"]["uri"]] = message["params"]
        return self.published[uri]["diagnostics"]

    def at(self, method: str, uri: str, position: dict, **more):
        return self.call("textDocument/" + method, {"textDocument": {"uri": uri}, "position": position, **more})

    def stop(self) -> int:
        """The exit status after an orderly end."""
        self.call("shutdown")
        self.notify("exit", None)
        return self.end()

    def end(self) -> int:
        """The exit status after the end of the server's input."""
        self.process.stdin.close()
        status = self.process.wait(timeout=PATIENCE)
        for thread in self.threads:
            thread.join(timeout=PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


def uri_of(path: str) -> str:
    return pathlib.Path(os.path.abspath(path)).as_uri()


def utf16(text: str) -> int:
    """The length in the protocol's columns."""
    return len(text.encode("utf-16-le")) // 2


def position(text: str, offset: int) -> dict:
    before = text[:offset]
    return {"line": before.count("\n"), "character": utf16(before[before.rfind("\n") + 1:])}


def mark(text: str, context: str) -> dict:
    """The position of the '^' in `context`, which is no part of the text."""
    offset = text.index(context.replace("^", ""))
    return position(text, offset + context.index("^"))
