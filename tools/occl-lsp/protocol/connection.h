// A client's messages to handlers, in the order and with the errors that the protocol asks for.
#pragma once

#include "mlir/Tools/lsp-server-support/Transport.h"
#include "tools/occl-lsp/protocol/message_reader.h"

#include <functional>

namespace occl::lsp {

/// Reads and checks; dispatching, decoding and answering are MLIR's MessageHandler's. What is no
/// message is answered with an error, and reading goes on. Not thread-safe.
class Connection {
public:
  Connection(int input, mlir::lsp::JSONTransport &output, mlir::lsp::MessageHandler &handler)
      : reader(input), output(output), handler(handler) {}

  /// Until the client says 'exit' or its stream ends. `onIdle` is called when no message is
  /// waiting. The exit status of the process: 0 if the client said 'shutdown' before 'exit'.
  int run(const std::function<void()> &onIdle);

private:
  enum class State { Fresh, Running, ShutDown };

  /// False after 'exit'.
  bool handle(const std::string &text);
  bool dispatch(llvm::json::Object &message);
  void call(llvm::StringRef method, llvm::json::Value params, llvm::json::Value id);
  void refuse(llvm::json::Value id, const char *message, mlir::lsp::ErrorCode code);

  MessageReader reader;
  mlir::lsp::JSONTransport &output;
  mlir::lsp::MessageHandler &handler;
  State state = State::Fresh;
};

} // namespace occl::lsp
