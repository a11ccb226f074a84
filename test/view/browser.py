"""A headless Chromium, spoken to over a pipe in the DevTools protocol."""

import base64
import contextlib
import json
import os
import subprocess
import tempfile


class Browser:
    """One page. Ends with its context."""

    def __init__(self, program: str, width: int = 1200, height: int = 640):
        self.stack = contextlib.ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        commands, self.to_browser = os.pipe()
        self.from_browser, answers = os.pipe()

        def place_pipes() -> None:  # Chromium reads from 3 and writes to 4
            os.dup2(os.dup(commands), 5)
            os.dup2(os.dup(answers), 6)
            os.dup2(5, 3)
            os.dup2(6, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", f"--user-data-dir={folder}",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=place_pipes, env={**os.environ, "HOME": folder})
        self.stack.callback(self._end)
        os.close(commands)
        os.close(answers)
        self.buffer, self.number, self.session = b"", 0, None
        self.events: list[dict] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def _receive(self) -> dict:
        while b"\0" not in self.buffer:
            piece = os.read(self.from_browser, 1 << 20)
            assert piece, "Chromium has ended"
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method: str, **parameters: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def evaluate(self, expression: str) -> object:
        """The value of an expression in the page; of a promise, once it is there."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, path: str) -> None:
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def complaints(self) -> list[dict]:
        """Exceptions, errors in the console, and what the page has asked the network for."""
        return [event for event in self.events
                if event.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")
                or event.get("method") == "Network.requestWillBeSent"
                and not event["params"]["request"]["url"].startswith("file:")]

    def processor_seconds(self) -> float:
        """Of all processes of this browser, so far."""
        parents, seconds = {}, {}
        for process in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
                parents[int(process)] = int(fields[1])
                seconds[int(process)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        def is_own(process: int) -> bool:
            return process == self.process.pid or process in parents and is_own(parents[process])

        return sum(seconds[process] for process in seconds if is_own(process))

    def mouse(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, left: float, top: float, width: float, height: float) -> bytes:
        """A part of the page, as a PNG."""
        clip = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip)["data"])
