// occl: one name for OCCL's programs. Its words are so few that no library reads them: `occl nccl`
// is in front of every process of a program, and starting is most of what that costs.
#include "runtime/api/occl.h"
#include "tools/occl/nccl_command.h"
#include "tools/occl/programs.h"

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace occl::driver;

constexpr const char *kHelp =
    R"(Collective communication: compiles, runs and times collectives, and runs
programs that are written for NCCL.
Usage: occl COMMAND [WORD]...

Commands, each with its own --help:
  run       starts a program, or a plan, as the ranks of a job: occl-run
  compile   makes a plan of a .coll file: occlc compile
  view      writes a page that shows a plan, or a trace: occlc view
  nccl      runs a program with OCCL in the place of NCCL
  lsp       tells editors about .coll files: occl-lsp
  doctor    says what of this machine OCCL can use, and what is in its way
  topo      writes what this machine is as a topology for occlc
  tune      measures the library's plans here, and writes a plan table

  --version  of OCCL

Examples:
  occl compile ring.coll -D ranks=8 -o ring.plan.json
  occl view ring.plan.json
  occl run --plan ring.plan.json
  occl run -n 4 ./program
  occl nccl torchrun --nproc-per-node=2 train.py
  occl doctor
  occl topo -o here.topo
  occl tune -n 4 -o plans.table
Exit status: the command's; 2 after an error in this command line.
)";

constexpr const char *kNcclHelp =
    R"(Runs a program, and all that it starts, with OCCL in the place of NCCL.
Says at the end if none of them has made a communicator.
Usage: occl nccl [--host] [--] PROGRAM [ARGUMENT]...

  --host      buffers are host memory, streams NULL; no GPU is used
  -h, --help  this text
)";

bool asksForHelp(const std::string &word) { return word == "-h" || word == "--help"; }

int refuse(const std::string &why) {
  std::fprintf(stderr, "occl: %s\nRun with --help for more information.\n", why.c_str());
  return 2;
}

/// Becomes the command's program.
int runCommand(const std::string &name, std::vector<std::string> words) {
  // By exec, so that no second process stays between the user and the program.
  if (name == "run")
    return become("occl run", pathOf("occl-run"), words);
  if (name == "compile" || name == "view") {
    words.insert(words.begin(), name);
    return become("occl " + name, pathOf("occlc"), words);
  }
  if (name == "lsp" || name == "doctor" || name == "topo" || name == "tune")
    return become("occl " + name, pathOf("occl-" + name), words);
  return refuse("there is no command '" + name + "'");
}

/// Its own options come before the program, whose words are not looked at.
int runNccl(const std::vector<std::string> &words) {
  bool isOnHost = false;
  // Options up to the first word that is none, or up to "--".
  auto word = words.begin();
  for (; word != words.end() && word->starts_with("-"); ++word) {
    if (asksForHelp(*word))
      return std::fputs(kNcclHelp, stdout) < 0;
    if (*word == "--") {
      ++word;
      break;
    }
    // Everything else that begins with '-' is refused: passed on, it would be taken for the
    // program.
    if (*word != "--host")
      return refuse("nccl: there is no option '" + *word + "'");
    isOnHost = true;
  }
  if (word == words.end())
    return refuse("nccl: there is no program to run");
  return runWithNccl({word, words.end()}, isOnHost);
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || asksForHelp(words[0])) {
    std::fputs(kHelp, stdout);
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version")
    return std::printf("occl %d.%d\n", OCCL_VERSION_MAJOR, OCCL_VERSION_MINOR) < 0;
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  return words[0] == "nccl" ? runNccl(rest) : runCommand(words[0], rest);
}
