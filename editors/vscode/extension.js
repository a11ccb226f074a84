// Starts occl-lsp for .coll files, and shows the plans that it answers with.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const PLAN_SCHEME = "occl-plan";
let client;

/** What the server is asked to compile with: its initializationOptions. */
function settings() {
  const all = vscode.workspace.getConfiguration("occl");
  return { importPaths: all.get("importPaths"), defines: all.get("defines"), topology: all.get("topology") };
}

/** Texts of plans, as documents that cannot be edited. */
class Plans {
  texts = new Map();
  count = 0;

  provideTextDocumentContent(uri) {
    return this.texts.get(uri.toString()) ?? "";
  }

  close(document) {
    this.texts.delete(document.uri.toString());
  }

  async show(name, text) {
    const uri = vscode.Uri.from({ scheme: PLAN_SCHEME, path: `${name}, plan ${++this.count}` });
    this.texts.set(uri.toString(), text);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  }
}

/** The plan of the algorithm at the cursor, with parameters that the user may set. */
async function showPlan(plans) {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "coll") return;
  const defines = await vscode.window.showInputBox({ prompt: "Parameters, such as: ranks=8 chunks=4; empty: the defaults" });
  if (defines === undefined) return;
  const request = {
    textDocument: { uri: editor.document.uri.toString() },
    position: editor.selection.active,
    defines: defines.split(/\s+/).filter((word) => word),
  };
  try {
    const text = await client.sendRequest("workspace/executeCommand", { command: "occl.plan", arguments: [request] });
    await plans.show(editor.document.uri.path, text);
  } catch (error) {
    await plans.show(editor.document.uri.path, error.message);
  }
}

async function activate(context) {
  const command = vscode.workspace.getConfiguration("occl").get("server");
  const plans = new Plans();
  client = new LanguageClient("occl", "OCCL", { command, args: [] }, {
    documentSelector: [{ scheme: "file", language: "coll" }],
    initializationOptions: settings(),
  });
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(PLAN_SCHEME, plans),
    vscode.workspace.onDidCloseTextDocument((document) => plans.close(document)),
    vscode.commands.registerCommand("occl.showPlan", () => showPlan(plans)),
  );
  await client.start();
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
