"""What tests of the language server share: its programs, files of the library, a server with an open document."""

import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from lsp_client import Client, mark, uri_of

LSP, OCCLC = (os.path.abspath(path) for path in sys.argv[1:3])
LIBRARY = sorted(str(path) for path in pathlib.Path("algorithms").rglob("*.coll"))
LARGEST = max(LIBRARY, key=os.path.getsize)
TREES = "algorithms/allreduce/double_binary_tree.coll"
RING = """// A ring: \u00e9, \U0001f600.
algorithm ring(ranks: int = 4) implements allreduce(ranks, chunks = ranks) {
  for i in 0..ranks {
    var c = input[i][i];
    for hop in 1..ranks {
      let r = (i + hop) % ranks;
      c = reduce(c, input[r][i]).into(output[r][i]);
    }
    for hop in ranks - 1 .. 2 * ranks - 1 { c = c.copy(output[(i + hop) % ranks][i]); }
  }
}
"""


def read(path: str) -> str:
    return pathlib.Path(path).read_text(encoding="utf-8")


class WithServer(unittest.TestCase):
    options: dict = {}

    def setUp(self):
        self.client = Client(LSP, self.options)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.uri = uri_of(f"{self.folder}/test.coll")

    def tearDown(self):
        self.assertEqual(self.client.stop(), 0)
        self.assertEqual(self.client.errors, b"")

    def open(self, text: str) -> list[dict]:
        self.client.open(self.uri, text)
        return self.client.diagnostics(self.uri)

    def codes(self) -> list[str]:
        return [one["code"] for one in self.client.diagnostics(self.uri)]

    def hover(self, text: str, context: str) -> str:
        answer = self.client.at("hover", self.uri, mark(text, context))
        return answer["contents"]["value"] if answer else ""

    def labels(self, text: str, context: str) -> set[str]:
        """Completions at the '^' of a text of which `context`, with what is missing, is a part."""
        self.client.open(self.uri, text)
        return {item["label"] for item in self.client.at("completion", self.uri, mark(text, context))["items"]}
