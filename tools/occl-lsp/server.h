// The language server: what it can do, and which function does it.
#pragma once

#include "mlir/Tools/lsp-server-support/Transport.h"
#include "tools/occl-lsp/protocol/messages.h"
#include "tools/occl-lsp/workspace/workspace.h"

namespace occl::lsp {

/// Has the handlers of all methods; who calls them keeps to the order of the protocol. Not
/// thread-safe.
class Server {
public:
  /// Both live longer.
  Server(mlir::lsp::JSONTransport &transport, mlir::lsp::MessageHandler &handler);

  /// Tells the client what is wrong with documents that have changed since the last time.
  void publish();

private:
  template <typename Result> using Callback = mlir::lsp::Callback<Result>;
  using Value = llvm::json::Value;
  using PositionParams = protocol::TextDocumentPositionParams;

  // Life
  void onInitialize(const InitializeParams &params, Callback<Value> reply);
  /// Asks the client to tell when files change on disk.
  void onInitialized(const protocol::InitializedParams &);
  void onShutdown(const protocol::NoParams &, Callback<std::nullptr_t> reply) { reply(nullptr); }

  // Documents
  void onOpen(const protocol::DidOpenTextDocumentParams &params);
  void onChange(const protocol::DidChangeTextDocumentParams &params);
  void onClose(const protocol::DidCloseTextDocumentParams &params);
  void onFilesChanged(const protocol::NoParams &) { workspace.forgetAll(); }

  // Features
  void onHover(const PositionParams &params, Callback<std::optional<protocol::Hover>> reply);
  void onDefinition(const PositionParams &params, Callback<std::vector<protocol::Location>> reply);
  void onReferences(const protocol::ReferenceParams &params,
                    Callback<std::vector<protocol::Location>> reply);
  void onSymbols(const protocol::DocumentSymbolParams &params,
                 Callback<std::vector<protocol::DocumentSymbol>> reply);
  void onCompletion(const protocol::CompletionParams &params,
                    Callback<protocol::CompletionList> reply);
  void onSignature(const PositionParams &params,
                   Callback<std::optional<protocol::SignatureHelp>> reply);
  void onFormatting(const DocumentFormattingParams &params,
                    Callback<std::vector<protocol::TextEdit>> reply);
  void onRename(const RenameParams &params, Callback<protocol::WorkspaceEdit> reply);
  void onCodeAction(const protocol::CodeActionParams &params,
                    Callback<std::vector<protocol::CodeAction>> reply);
  void onCommand(const ExecuteCommandParams &params, Callback<Value> reply);

  void registerFeatures(mlir::lsp::MessageHandler &handler);
  /// The open document, or an error.
  llvm::Expected<Document *> find(const protocol::TextDocumentIdentifier &id);
  /// Answers with what `feature` makes of the document, or with the error that it is not open.
  template <typename Result, typename Feature>
  void answer(const protocol::TextDocumentIdentifier &id, Callback<Result> reply, Feature feature) {
    llvm::Expected<Document *> document = find(id);
    if (!document)
      return reply(document.takeError());
    reply(feature(**document));
  }

  mlir::lsp::JSONTransport &transport;
  bool canWatchFiles = false; // the client
  Workspace workspace;
  mlir::lsp::OutgoingNotification<PublishDiagnosticsParams> publishDiagnostics;
};

} // namespace occl::lsp
