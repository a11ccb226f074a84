#include "tools/occl-run/launcher.h"

#include <CLI/CLI.hpp>

int main(int argc, char **argv) {
  CLI::App app("Starts a program as the ranks of a job on this machine.", "occl-run");
  app.footer("Examples:\n"
             "  occl-run -n 8 ./train --epochs 3     8 processes; occlCommInitFromEnv joins them\n"
             "  occl-run -n 2 --tag-output -- date   \"[0] \" or \"[1] \" before every line");
  occl::run::LaunchOptions options;
  uint32_t graceMs = static_cast<uint32_t>(options.grace.count());
  app.add_option("-n,--ranks", options.numRanks, "number of ranks")
      ->check(CLI::Range(1, 1024))
      ->required();
  app.add_flag("--tag-output", options.tagOutput, "put the rank before every line of output");
  app.add_option(
      "--grace", graceMs,
      "milliseconds that the other ranks have to end after one has failed; default 5000");
  app.prefix_command();
  CLI11_PARSE(app, argc, argv);
  options.grace = std::chrono::milliseconds(graceMs);
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--")
    options.command.erase(options.command.begin());
  if (options.command.empty()) {
    std::cerr << "occl-run: no program given; see occl-run --help\n";
    return 2;
  }
  return occl::run::launch(options);
}
