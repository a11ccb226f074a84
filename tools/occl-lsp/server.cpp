#include "tools/occl-lsp/server.h"

#include "tools/occl-lsp/features/completion.h"
#include "tools/occl-lsp/features/diagnostics.h"
#include "tools/occl-lsp/features/editing.h"
#include "tools/occl-lsp/features/hover.h"
#include "tools/occl-lsp/features/navigation.h"
#include "tools/occl-lsp/features/plan_preview.h"

namespace occl::lsp {

using llvm::json::Object;
using mlir::lsp::Logger;

namespace {

constexpr const char *kPlanCommand = "occl.plan";

Object capabilities() {
  // What is not named here, clients do not ask for.
  return Object{
      {"textDocumentSync",
       Object{{"openClose", true},
              // Changes come as replaced ranges, not as the whole text.
              {"change", static_cast<int>(protocol::TextDocumentSyncKind::Incremental)}}},
      {"hoverProvider", true},
      {"definitionProvider", true},
      {"referencesProvider", true},
      {"documentSymbolProvider", true},
      {"documentFormattingProvider", true},
      {"renameProvider", true},
      {"codeActionProvider",
       Object{{"codeActionKinds", llvm::json::Array{protocol::CodeAction::kQuickFix}}}},
      // Completion is also asked for after these characters, which are in no word.
      {"completionProvider", Object{{"triggerCharacters", llvm::json::Array{".", "\"", "/"}}}},
      {"signatureHelpProvider", Object{{"triggerCharacters", llvm::json::Array{"(", ","}}}},
      {"executeCommandProvider", Object{{"commands", llvm::json::Array{kPlanCommand}}}},
  };
}

} // namespace

Server::Server(mlir::lsp::JSONTransport &transport, mlir::lsp::MessageHandler &handler)
    : transport(transport),
      publishDiagnostics(handler.outgoingNotification<PublishDiagnosticsParams>(
          "textDocument/publishDiagnostics")) {
  // Lifecycle and documents; the others are requests about documents.
  handler.method("initialize", this, &Server::onInitialize);
  handler.notification("initialized", this, &Server::onInitialized);
  handler.method("shutdown", this, &Server::onShutdown);
  handler.notification("textDocument/didOpen", this, &Server::onOpen);
  handler.notification("textDocument/didChange", this, &Server::onChange);
  handler.notification("textDocument/didClose", this, &Server::onClose);
  handler.notification("workspace/didChangeWatchedFiles", this, &Server::onFilesChanged);
  registerFeatures(handler);
}

void Server::registerFeatures(mlir::lsp::MessageHandler &handler) {
  handler.method("textDocument/hover", this, &Server::onHover);
  handler.method("textDocument/definition", this, &Server::onDefinition);
  handler.method("textDocument/references", this, &Server::onReferences);
  handler.method("textDocument/documentSymbol", this, &Server::onSymbols);
  handler.method("textDocument/completion", this, &Server::onCompletion);
  handler.method("textDocument/signatureHelp", this, &Server::onSignature);
  handler.method("textDocument/formatting", this, &Server::onFormatting);
  handler.method("textDocument/rename", this, &Server::onRename);
  handler.method("textDocument/codeAction", this, &Server::onCodeAction);
  handler.method("workspace/executeCommand", this, &Server::onCommand);
}

void Server::onInitialize(const InitializeParams &params, Callback<Value> reply) {
  canWatchFiles = params.canWatchFiles;
  workspace.configure({params.importPaths, params.topology, params.defines});
  reply(Object{{"capabilities", capabilities()}, {"serverInfo", Object{{"name", "occl-lsp"}}}});
}

void Server::onInitialized(const protocol::InitializedParams &) {
  // Clients that can watch files tell which have changed on disk; without it, only open documents
  // are known to change.
  if (!canWatchFiles)
    return;
  constexpr const char *kMethod = "workspace/didChangeWatchedFiles";
  llvm::json::Array watchers{Object{{"globPattern", "**/*.{coll,topo}"}}};
  Object registration{{"id", kMethod},
                      {"method", kMethod},
                      {"registerOptions", Object{{"watchers", std::move(watchers)}}}};
  transport.call("client/registerCapability",
                 Object{{"registrations", llvm::json::Array{std::move(registration)}}}, kMethod);
}

void Server::onOpen(const protocol::DidOpenTextDocumentParams &params) {
  const protocol::TextDocumentItem &item = params.textDocument;
  workspace.open(item.uri, item.text, item.version);
}

void Server::onChange(const protocol::DidChangeTextDocumentParams &params) {
  if (!workspace.change(params))
    Logger::error("didChange of a document that is not open: {0}", params.textDocument.uri.uri());
}

void Server::onClose(const protocol::DidCloseTextDocumentParams &params) {
  if (workspace.close(params.textDocument.uri))
    publishDiagnostics({params.textDocument.uri, std::nullopt, {}});
}

void Server::publish() {
  for (Document *document : workspace.unpublished()) {
    publishDiagnostics({document->uri, document->version, diagnosticsOf(workspace, *document)});
    document->isPublished = true;
  }
}

llvm::Expected<Document *> Server::find(const protocol::TextDocumentIdentifier &id) {
  if (Document *document = workspace.find(id.uri))
    return document;
  return failure("'" + id.uri.uri().str() + "' is not open", protocol::ErrorCode::InvalidParams);
}

void Server::onHover(const PositionParams &params, Callback<std::optional<protocol::Hover>> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return hoverAt(workspace, document, params.position); });
}

void Server::onDefinition(const PositionParams &params,
                          Callback<std::vector<protocol::Location>> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return definitionAt(workspace, document, params.position); });
}

void Server::onReferences(const protocol::ReferenceParams &params,
                          Callback<std::vector<protocol::Location>> reply) {
  answer(params.textDocument, std::move(reply), [&](Document &document) {
    return referencesAt(workspace, document, params.position, params.context.includeDeclaration);
  });
}

void Server::onSymbols(const protocol::DocumentSymbolParams &params,
                       Callback<std::vector<protocol::DocumentSymbol>> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return symbolsOf(workspace, document); });
}

void Server::onCompletion(const protocol::CompletionParams &params,
                          Callback<protocol::CompletionList> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return completionAt(workspace, document, params.position); });
}

void Server::onSignature(const PositionParams &params,
                         Callback<std::optional<protocol::SignatureHelp>> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return signatureAt(workspace, document, params.position); });
}

void Server::onFormatting(const DocumentFormattingParams &params,
                          Callback<std::vector<protocol::TextEdit>> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return formatted(document); });
}

void Server::onRename(const RenameParams &params, Callback<protocol::WorkspaceEdit> reply) {
  answer(params.textDocument, std::move(reply), [&](Document &document) {
    return renameAt(workspace, document, params.position, params.newName);
  });
}

void Server::onCodeAction(const protocol::CodeActionParams &params,
                          Callback<std::vector<protocol::CodeAction>> reply) {
  answer(params.textDocument, std::move(reply),
         [&](Document &document) { return fixesOf(workspace, document, params.range); });
}

void Server::onCommand(const ExecuteCommandParams &params, Callback<Value> reply) {
  // Commands have arguments without a type: each checks its own.
  if (params.command != kPlanCommand)
    return reply(failure("there is no command '" + params.command + "'",
                         protocol::ErrorCode::InvalidParams));
  llvm::Expected<PlanParams> plan = mlir::lsp::MessageHandler::parse<PlanParams>(
      params.arguments.empty() ? Value(nullptr) : params.arguments.front(), kPlanCommand,
      "argument");
  if (!plan)
    return reply(plan.takeError());
  // A plan is made of the document's text as it is, also unsaved.
  answer(plan->textDocument, std::move(reply), [&](Document &document) -> llvm::Expected<Value> {
    llvm::Expected<std::string> text = previewPlan(workspace, document, *plan);
    if (!text)
      return text.takeError();
    return Value(std::move(*text));
  });
}

} // namespace occl::lsp
