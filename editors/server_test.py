#!/usr/bin/env python3
"""The extension for Visual Studio Code starts the server, and what it says of itself is what it does.

With node, extension.js runs, with what it requires made up."""
import json
import re
import shutil
import subprocess
import sys
import unittest

EXTENSION = "editors/vscode/extension.js"
SERVER = "tools/occl-lsp"

# Runs the extension as an editor does: prints what it starts, and what the command that shows a plan asks for.
HARNESS = """
const Module = require("module");
const log = [];
const editor = { document: { languageId: "coll", uri: { path: "/a.coll", toString: () => "file:///a.coll" } },
                 selection: { active: { line: 1, character: 2 } } };
const commands = {}, opened = [], closed = [];
const vscode = {
  workspace: { getConfiguration: () => ({ get: (name) => (SETTINGS)[name] }), onDidCloseTextDocument: (run) => { vscode.close = run; },
               registerTextDocumentContentProvider: (scheme, provider) => { vscode.provider = provider; },
               openTextDocument: async (uri) => { const text = () => vscode.provider.provideTextDocumentContent(uri);
                                                   opened.push(text()); vscode.close({ uri }); closed.push(text()); return uri; } },
  window: { activeTextEditor: editor, showInputBox: async () => "ranks=8  chunks=4", showTextDocument: async () => {} },
  commands: { registerCommand: (name, run) => { commands[name] = run; } },
  Uri: { from: (parts) => ({ toString: () => parts.scheme + ":" + parts.path }) }, ViewColumn: { Beside: -2 },
};
class LanguageClient {
  constructor(id, name, server, options) { log.push({ server, options }); }
  async start() { log.push("start"); }
  async stop() { log.push("stop"); }
  async sendRequest(method, params) { log.push({ method, params }); if (FAILS) throw new Error("no plan"); return "the plan"; }
}
const load = Module._load;
Module._load = (name, ...rest) => name === "vscode" ? vscode : name === "vscode-languageclient/node" ? { LanguageClient } : load(name, ...rest);
const extension = require(PATH);
(async () => {
  await extension.activate({ subscriptions: [] });
  await commands["occl.showPlan"]();
  await extension.deactivate();
  console.log(JSON.stringify({ log, opened, closed, commands: Object.keys(commands) }));
})();
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def package():
    return json.loads(read("editors/vscode/package.json"))


def run_extension(fails):
    settings = {name.removeprefix("occl."): entry["default"] for name, entry in package()["contributes"]["configuration"]["properties"].items()}
    text = HARNESS.replace("PATH", json.dumps("./" + EXTENSION)).replace("SETTINGS", json.dumps(settings)).replace("FAILS", json.dumps(fails))
    done = subprocess.run(["node", "-e", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class ServerTest(unittest.TestCase):
    def test_package(self):
        contents = package()
        self.assertEqual(contents["main"], "./extension.js")
        required = set(re.findall(r'require\("([^"]+)"\)', read(EXTENSION)))
        self.assertEqual(required, {"vscode", "vscode-languageclient/node"})
        self.assertEqual(set(contents["dependencies"]), {"vscode-languageclient"})
        self.assertIn("vscode", contents["engines"])

    def test_settings_are_the_servers(self):
        properties = {name.removeprefix("occl.") for name in package()["contributes"]["configuration"]["properties"]}
        options = set(re.findall(r'mapOptional\("(\w+)", result\.\w+\)', read(f"{SERVER}/protocol/messages.cpp").split("RenameParams")[0]))
        self.assertEqual(len(options), 3)
        self.assertEqual(properties, options | {"server"})
        self.assertEqual(set(re.findall(r'all\.get\("(\w+)"\)', read(EXTENSION))), options)

    def test_command_is_the_servers(self):
        (command,) = re.findall(r'kPlanCommand = "([\w.]+)"', read(f"{SERVER}/server.cpp"))
        self.assertIn(f'command: "{command}"', read(EXTENSION))
        # A client registers the server's commands under their names itself.
        self.assertNotEqual([entry["command"] for entry in package()["contributes"]["commands"]], [command])

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_starts_the_server(self):
        done = run_extension(fails=False)
        start, begin, request, end = done["log"]
        self.assertEqual(start["server"], {"command": "occl-lsp", "args": []})
        self.assertEqual(start["options"]["documentSelector"], [{"scheme": "file", "language": "coll"}])
        self.assertEqual(start["options"]["initializationOptions"], {"importPaths": [], "defines": [], "topology": ""})
        self.assertEqual((begin, end), ("start", "stop"))
        self.assertEqual(request, {"method": "workspace/executeCommand", "params": {"command": "occl.plan", "arguments": [
            {"textDocument": {"uri": "file:///a.coll"}, "position": {"line": 1, "character": 2}, "defines": ["ranks=8", "chunks=4"]}]}})
        self.assertEqual(done["opened"], ["the plan"])
        self.assertEqual(done["closed"], [""], "what nobody looks at is not kept")
        self.assertEqual(done["commands"], [entry["command"] for entry in package()["contributes"]["commands"]])
        self.assertEqual(run_extension(fails=True)["opened"], ["no plan"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
