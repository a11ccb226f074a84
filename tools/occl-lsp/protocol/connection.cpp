#include "tools/occl-lsp/protocol/connection.h"

#include "tools/occl-lsp/protocol/messages.h"

namespace occl::lsp {

using protocol::ErrorCode;

namespace {

/// Whether arrays and objects are nested so deeply that reading them, which is recursive, would
/// take more than a stack has.
bool isTooDeep(llvm::StringRef text) {
  // Deeper than any message of the protocol, and far from what the stack holds.
  constexpr int kMaxDepth = 200;
  int depth = 0;
  bool isString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    // Brackets in texts do not count; behind a backslash no quote ends one.
    if (isString && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      isString = !isString;
    else if (!isString && (text[i] == '[' || text[i] == '{'))
      if (++depth > kMaxDepth)
        return true;
    if (!isString && i < text.size() && (text[i] == ']' || text[i] == '}'))
      --depth;
  }
  return false;
}

llvm::json::Value takeOr(llvm::json::Object &object, llvm::StringRef key) {
  llvm::json::Value *value = object.get(key);
  return value ? std::move(*value) : llvm::json::Value(nullptr);
}

} // namespace

int Connection::run(const std::function<void()> &onIdle) {
  // One message at a time, in the order in which they come: requests about a document expect the
  // changes before them.
  std::string text;
  for (;;) {
    // Nothing waits: time for what clients did not ask for, such as diagnostics.
    if (!reader.hasInput())
      onIdle();
    switch (reader.next(text)) {
    case MessageReader::Status::End:
      return 1;
    case MessageReader::Status::BadHeader:
      refuse(nullptr, "a message begins with a header 'Content-Length: <bytes>' and an empty line",
             ErrorCode::ParseError);
      break;
    case MessageReader::Status::TooLarge:
      refuse(nullptr, "a message has at most 128 MiB", ErrorCode::InvalidRequest);
      break;
    case MessageReader::Status::Message: {
      // The protocol wants status 0 only for an exit that was announced by a shutdown.
      const bool wasShutDown = state == State::ShutDown;
      if (!handle(text))
        return wasShutDown ? 0 : 1;
    }
    }
  }
}

void Connection::refuse(llvm::json::Value id, const char *message, ErrorCode code) {
  output.reply(std::move(id), failure(message, code));
}

bool Connection::handle(const std::string &text) {
  // LLVM's parser is recursive, and a client's text may come from a file that somebody else has
  // made.
  if (isTooDeep(text)) {
    refuse(nullptr, "JSON that is nested too deeply", ErrorCode::ParseError);
    return true;
  }
  llvm::Expected<llvm::json::Value> message = llvm::json::parse(text);
  if (!message) {
    refuse(nullptr, llvm::toString(message.takeError()).c_str(), ErrorCode::ParseError);
    return true;
  }
  llvm::json::Object *object = message->getAsObject();
  if (object && object->getString("jsonrpc") == llvm::StringRef("2.0"))
    return dispatch(*object);
  // An answer to a message that is none names its id if there is one, as the client may wait.
  llvm::json::Value id = object ? takeOr(*object, "id") : llvm::json::Value(nullptr);
  refuse(std::move(id), "a message is an object with \"jsonrpc\": \"2.0\"",
         ErrorCode::InvalidRequest);
  return true;
}

bool Connection::dispatch(llvm::json::Object &message) {
  std::optional<llvm::StringRef> name = message.getString("method");
  const std::string method = name.value_or("").str();
  if (!name) {
    // What the client says to what it was asked for changes nothing.
    if (!message.get("result") && !message.get("error"))
      refuse(takeOr(message, "id"), "a message has a method", ErrorCode::InvalidRequest);
    return true;
  }
  llvm::json::Value params = takeOr(message, "params");
  // With an id it is a request and is answered in any case; without one it is a notification and
  // never is.
  if (message.get("id")) {
    call(method, std::move(params), takeOr(message, "id"));
    return true;
  }
  if (method == "exit")
    return false;
  return state != State::Running || handler.onNotify(method, std::move(params));
}

void Connection::call(llvm::StringRef method, llvm::json::Value params, llvm::json::Value id) {
  // The protocol's order: initialize first and once, nothing but exit after shutdown.
  bool isFirst = method == "initialize";
  if (state == State::ShutDown)
    return refuse(std::move(id), "the server was shut down", ErrorCode::InvalidRequest);
  if (state == State::Fresh && !isFirst)
    return refuse(std::move(id), "the server is not initialized", ErrorCode::ServerNotInitialized);
  if (state == State::Running && isFirst)
    return refuse(std::move(id), "the server is initialized already", ErrorCode::InvalidRequest);
  if (isFirst)
    state = State::Running;
  if (method == "shutdown")
    state = State::ShutDown;
  handler.onCall(method, std::move(params), std::move(id));
}

} // namespace occl::lsp
