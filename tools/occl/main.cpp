// occl: one name for OCCL's programs.
#include "tools/occl/nccl_command.h"
#include "tools/occl/programs.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace occl::driver;

constexpr const char *kExamples = R"(
Examples:
  occl compile ring.coll -D ranks=8 -o ring.plan.json
  occl view ring.plan.json
  occl run --plan ring.plan.json
  occl run -n 4 ./program
  occl nccl torchrun --nproc-per-node=2 train.py
  occl doctor
  occl topo -o here.topo
  occl tune -n 4 -o plans.table
Each command has its own --help.
Exit status: the command's; 2 after an error in this command line.)";

int refuse(const std::string &why) {
  std::fprintf(stderr, "occl: %s\nRun with --help for more information.\n", why.c_str());
  return 2;
}

/// Becomes the command's program.
int runCommand(const std::string &name, std::vector<std::string> words) {
  if (name == "run")
    return become("occl run", pathOf("occl-run"), words);
  if (name == "compile" || name == "view") {
    words.insert(words.begin(), name);
    return become("occl " + name, pathOf("occlc"), words);
  }
  if (name == "doctor" || name == "topo" || name == "tune")
    return become("occl " + name, pathOf("occl-" + name), words);
  return refuse("there is no command '" + name + "'");
}

/// Its own options come before the command, whose words are not looked at.
int runNccl(const std::vector<std::string> &words) {
  CLI::App app{"Runs a program, and all that it starts, with OCCL in the place of NCCL.\n"
               "Says at the end if none of them has made a communicator.\n"
               "occl nccl [OPTIONS] [--] PROGRAM [ARGUMENT]...",
               "occl nccl"};
  bool isOnHost = false;
  app.add_flag("--host", isOnHost, "buffers are host memory, streams NULL; no GPU is used");
  const auto command = std::ranges::find_if(
      words, [](const std::string &word) { return word == "--" || !word.starts_with('-'); });
  std::vector<std::string> options(words.begin(), command);
  std::ranges::reverse(options); // as CLI11 takes them
  try {
    app.parse(options);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return refuse("nccl: " + std::string(error.what()));
  }
  const bool isMarked = command != words.end() && *command == "--";
  const std::vector<std::string> program(command + (isMarked ? 1 : 0), words.end());
  if (program.empty())
    return refuse("nccl: there is no program to run");
  return runWithNccl(program, isOnHost);
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  CLI::App app{"Collective communication: compiles, runs and times collectives, and runs programs "
               "that are written for NCCL.",
               "occl"};
  app.add_subcommand("run", "starts a program, or a plan, as the ranks of a job: occl-run");
  app.add_subcommand("compile", "makes a plan of a .coll file: occlc compile");
  app.add_subcommand("view", "writes a page that shows a plan, or a trace: occlc view");
  app.add_subcommand("nccl", "runs a program with OCCL in the place of NCCL");
  app.add_subcommand("doctor", "says what of this machine OCCL can use, and what is in its way");
  app.add_subcommand("topo", "writes what this machine is as a topology for occlc");
  app.add_subcommand("tune",
                     "measures the library's plans here, and writes which serves which size");
  app.footer(kExamples);
  if (words.empty() || words[0] == "-h" || words[0] == "--help") {
    std::cout << app.help();
    return words.empty() ? 2 : 0;
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  return words[0] == "nccl" ? runNccl(rest) : runCommand(words[0], rest);
}
