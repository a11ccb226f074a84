// What the protocol has and MLIR's library lacks.
#pragma once

#include "mlir/Tools/lsp-server-support/Protocol.h"

#include <optional>
#include <string>
#include <vector>

namespace occl::lsp {

namespace protocol = mlir::lsp;

/// With the code that occlc shows.
struct Diagnostic : protocol::Diagnostic {
  std::string code;
};
llvm::json::Value toJSON(const Diagnostic &diagnostic);

struct PublishDiagnosticsParams {
  protocol::URIForFile uri;
  std::optional<int64_t> version; // nothing: of a document that is closed
  std::vector<Diagnostic> diagnostics;
};
llvm::json::Value toJSON(const PublishDiagnosticsParams &params);

struct InitializeParams : protocol::InitializeParams {
  /// initializationOptions: what they have, and does not fit, is an error.
  std::vector<std::string> importPaths, defines;
  std::string topology;
  /// Whether the client tells of changed files if it is asked to.
  bool canWatchFiles = false;
};
bool fromJSON(const llvm::json::Value &value, InitializeParams &result, llvm::json::Path path);

struct DocumentFormattingParams {
  protocol::TextDocumentIdentifier textDocument;
};
bool fromJSON(const llvm::json::Value &value, DocumentFormattingParams &result,
              llvm::json::Path path);

struct RenameParams : protocol::TextDocumentPositionParams {
  std::string newName;
};
bool fromJSON(const llvm::json::Value &value, RenameParams &result, llvm::json::Path path);

struct ExecuteCommandParams {
  std::string command;
  llvm::json::Array arguments;
};
bool fromJSON(const llvm::json::Value &value, ExecuteCommandParams &result, llvm::json::Path path);

/// The argument of the command occl.plan.
struct PlanParams {
  protocol::TextDocumentIdentifier textDocument;
  std::optional<protocol::Position> position; // within the algorithm that is meant
  std::string algorithm;                      // its name instead
  std::vector<std::string> defines;           // "name=value", after the settings'
  std::optional<int64_t> bytes, rank;         // of a part; whose instructions, all without it
};
bool fromJSON(const llvm::json::Value &value, PlanParams &result, llvm::json::Path path);

/// An error of the protocol.
llvm::Error failure(std::string message,
                    protocol::ErrorCode code = protocol::ErrorCode::RequestFailed);

} // namespace occl::lsp
