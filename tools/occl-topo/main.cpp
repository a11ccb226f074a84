// occl-topo, `occl topo`: writes what this machine is as a topology.
#include "tools/command_line/app.h"
#include "tools/occl-topo/cpus.h"
#include "tools/occl-topo/gpus.h"
#include "tools/occl-topo/topo_text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

int fail(const std::string &why) {
  std::fprintf(stderr, "occl topo: %s\n", why.c_str());
  return 1;
}

/// Of the language in which the topology is written, now or later.
bool isReserved(const std::string &text) {
  constexpr std::string_view kWords[] = {
#define OCCL_KEYWORD(name, spelling) spelling,
#define OCCL_RESERVED(spelling) spelling,
#include "compiler/frontend/syntax/Token.def"
  };
  return std::ranges::find(kWords, text) != std::end(kWords);
}

bool isName(const std::string &text) {
  const auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && isLetter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

int write(const std::string &text, const std::string &path) {
  // The file is opened after the text is complete, so a failure leaves an earlier one as it was.
  if (path == "-") {
    std::cout << text << std::flush;
    return std::cout ? 0 : fail("cannot write to standard output");
  }
  std::ofstream out(path);
  out << text;
  return out.flush() ? 0 : fail("cannot write '" + path + "': " + std::strerror(errno));
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"Writes what this machine is as a topology for occlc --topology (docs/topology.md): "
               "its NVIDIA "
               "GPUs and their links by NVML, or without GPUs its cores and memories by hwloc.",
               "occl topo"};
  occl::tools::prepare(app);
  std::string output = "-", name = "this_machine";
  bool isHost = false;
  app.add_option("-o,--output", output, "the file to write; - is standard output")
      ->capture_default_str();
  app.add_option("--name", name, "of the topology")->capture_default_str();
  app.add_flag("--host", isHost,
               "ranks are processes on this machine's cores, whatever GPUs it has");
  app.footer("hwloc's environment counts: HWLOC_XMLFILE (as lstopo writes it) and\n"
             "HWLOC_FSROOT name the record of another machine, of which cores and memories\n"
             "are taken: use --host.\n"
             "Exit status: 0; 1 if the machine or the file cannot be read or written; 2 after\n"
             "an error in this command line.");
  // The name becomes a word of the file, which has to be readable.
  try {
    app.parse(argc, argv);
    if (!isName(name))
      throw CLI::ValidationError("--name", "'" + name + "' is no name: letters, digits and _");
    if (isReserved(name))
      throw CLI::ValidationError("--name", "'" + name + "' is a word of the language");
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return error.get_exit_code() == 0 ? 0 : 2;
  }
  occl::topo::Machine machine;
  // GPUs if there are any: then they are what ranks run on. Without them, and with --host,
  // processors.
  std::string wrong = isHost ? "" : occl::topo::findGpus(machine);
  if (wrong.empty() && machine.gpus.empty())
    wrong = occl::topo::findCpus(machine);
  return wrong.empty() ? write(occl::topo::topologyText(machine, name), output) : fail(wrong);
}
