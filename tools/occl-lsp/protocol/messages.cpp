#include "tools/occl-lsp/protocol/messages.h"

namespace occl::lsp {

using llvm::json::ObjectMapper;
using llvm::json::Value;

Value toJSON(const Diagnostic &diagnostic) {
  Value value = protocol::toJSON(diagnostic);
  if (!diagnostic.code.empty())
    (*value.getAsObject())["code"] = diagnostic.code;
  return value;
}

Value toJSON(const PublishDiagnosticsParams &params) {
  llvm::json::Object object{{"uri", params.uri},
                            {"diagnostics", llvm::json::Array(params.diagnostics)}};
  if (params.version)
    object["version"] = *params.version;
  return object;
}

bool fromJSON(const Value &value, InitializeParams &result, llvm::json::Path path) {
  // MLIR's struct has what its own servers need; the rest is read here.
  if (!protocol::fromJSON(value, result, path))
    return false;
  const llvm::json::Object *params = value.getAsObject();
  // Each step may be missing: clients send what they support.
  const llvm::json::Object *watching = params;
  for (const char *name : {"capabilities", "workspace", "didChangeWatchedFiles"})
    watching = watching ? watching->getObject(name) : nullptr;
  result.canWatchFiles = watching && watching->getBoolean("dynamicRegistration").value_or(false);
  // Editors' settings for this server; without them there are none.
  const Value *options = params ? params->get("initializationOptions") : nullptr;
  if (!options || options->getAsNull())
    return true;
  // The path is for messages: it names the field in which something is wrong.
  llvm::json::Path place = path.field("initializationOptions");
  ObjectMapper mapper(*options, place);
  return mapper && mapper.mapOptional("importPaths", result.importPaths) &&
         mapper.mapOptional("defines", result.defines) &&
         mapper.mapOptional("topology", result.topology);
}

bool fromJSON(const Value &value, DocumentFormattingParams &result, llvm::json::Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("textDocument", result.textDocument);
}

bool fromJSON(const Value &value, RenameParams &result, llvm::json::Path path) {
  ObjectMapper mapper(value, path);
  return mapper && protocol::fromJSON(value, result, path) && mapper.map("newName", result.newName);
}

bool fromJSON(const Value &value, ExecuteCommandParams &result, llvm::json::Path path) {
  ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("command", result.command))
    return false;
  if (const llvm::json::Array *arguments = value.getAsObject()->getArray("arguments"))
    result.arguments = *arguments;
  return true;
}

bool fromJSON(const Value &value, PlanParams &result, llvm::json::Path path) {
  ObjectMapper mapper(value, path);
  return mapper && mapper.map("textDocument", result.textDocument) &&
         mapper.mapOptional("position", result.position) &&
         mapper.mapOptional("algorithm", result.algorithm) &&
         mapper.mapOptional("defines", result.defines) &&
         mapper.mapOptional("bytes", result.bytes) && mapper.mapOptional("rank", result.rank);
}

llvm::Error failure(std::string message, protocol::ErrorCode code) {
  return llvm::make_error<protocol::LSPError>(llvm::json::fixUTF8(message), code);
}

} // namespace occl::lsp
