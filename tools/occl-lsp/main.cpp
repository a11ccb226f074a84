// occl-lsp: a language server for .coll files, on standard input and output.
#include "tools/command_line/app.h"
#include "tools/occl-lsp/protocol/connection.h"
#include "tools/occl-lsp/server.h"

#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <unistd.h>

namespace {

constexpr const char *kFooter =
    R"(An editor starts it; docs/editors.md says how. It speaks the Language Server
Protocol 3.17 in UTF-16 columns.
Exit status: 0 after 'shutdown' and 'exit', 1 if the client ends without, 2
after an error in the command line.)";

int serve() {
  std::signal(SIGPIPE, SIG_IGN); // a client that is gone is noticed at the end of its stream
  // Everything on standard output is the protocol's: messages for people go to standard error.
  llvm::raw_fd_ostream output(STDOUT_FILENO, /*shouldClose=*/false);
  mlir::lsp::JSONTransport transport(stdin, output);
  mlir::lsp::MessageHandler handler(transport);
  occl::lsp::Server server(transport, handler);
  occl::lsp::Connection connection(STDIN_FILENO, transport, handler);
  // Diagnostics are published when no message waits, so that typing does not compile each letter.
  int status = connection.run([&] { server.publish(); });
  // A client that has gone leaves an error in the stream, which would end the process with a
  // message.
  output.clear_error();
  return status;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app(
      "Tells editors about .coll files: errors while typing, types and places, definitions, "
      "completion, layout, plans.",
      "occl-lsp");
  occl::tools::prepare(app);
  app.footer(kFooter);
  // --stdio is accepted because most clients pass it.
  bool isVerbose = false, isStdio = true;
  app.add_flag("--log", isVerbose, "write the names of all messages to standard error");
  app.add_flag("--stdio", isStdio, "speak on standard input and output, which it does anyway");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wish) {
    return app.exit(wish);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return 2;
  }
  mlir::lsp::Logger::setLogLevel(isVerbose ? mlir::lsp::Logger::Level::Info
                                           : mlir::lsp::Logger::Level::Error);
  return serve();
}
