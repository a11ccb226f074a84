"""A page whose scripts run in Node.js, with the document of dom.js: what Browser is to Chromium, without pixels."""

import json
import os
import subprocess


class Dom:
    def __init__(self) -> None:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dom.js")
        self.process = subprocess.Popen(["node", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Dom":
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()

    def _ask(self, command: str, text: str) -> object:
        self.process.stdin.write(json.dumps([command, text]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, list), answer["error"]
        return answer[0]

    def open(self, path: str) -> None:
        self._ask("open", path)

    def evaluate(self, expression: str) -> object:
        return self._ask("evaluate", expression)
