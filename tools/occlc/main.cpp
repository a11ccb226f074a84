// occlc: the compiler's command line.
#include "tools/occlc/commands.h"
#include "tools/occlc/fmt_command.h"

#include "plan/limits.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <iostream>
#include <map>

namespace {

using namespace occl;

constexpr const char *kExamples = R"(Examples:
  occlc compile ring.coll -D ranks=8 -o ring.plan.json
  occlc compile ring.coll -D ranks=8 -o ring.plan.cbor --max-thread-blocks 2 --stats
  occlc compile ring.coll -D ranks=4 --emit=dot | dot -Tsvg > ring.svg
  occlc check ring.coll -D ranks=8
  occlc explain ring.plan.json --rank 3
  occlc fmt -i ring.coll
Exit status: 0, 1 after an error in the input, 2 after an error in the command line.)";

/// A subcommand and what to do if it was given.
struct Command {
  CLI::App *app;
  std::function<int()> run;
};

void addSourceOptions(CLI::App &app, driver::CompileOptions &options) {
  app.add_option("file", options.path, "a .coll file, or IR (.mlir, .mlirbc)")->required();
  app.add_option("-D,--define", options.defines, "a parameter's value: name=value")
      ->allow_extra_args(false);
  app.add_option("-I,--import-path", options.importPaths, "a folder in which to look for imports")
      ->allow_extra_args(false);
  app.add_option("--algorithm", options.algorithm,
                 "which algorithm of the file, if it has several");
  app.add_option("--bytes", options.bytes,
                 "only the version of the algorithm that is for parts of this size");
  app.add_option("--max-ops", options.maxOps,
                 "reads, copies and reductions that a program may consist of");
}

void addPlanOptions(CLI::App &app, driver::CompileOptions &options) {
  app.add_option("--depth", options.depth,
                 "messages in flight on a connection; raised if the program needs more")
      ->check(CLI::Range(1u, plan::limits::kMaxDepth));
  app.add_option("--max-depth", options.pipeline.maxDepth, "how far the depth may be raised")
      ->check(CLI::Range(1u, plan::limits::kMaxDepth))
      ->capture_default_str();
  app.add_option("--max-thread-blocks", options.pipeline.maxThreadBlocks,
                 "thread blocks that a rank may have; without it, those that the source asks for")
      ->check(CLI::Range(1u, plan::limits::kMaxThreadBlocks));
  app.add_option("--max-channels", options.pipeline.maxChannels,
                 "channels that connections may use")
      ->check(CLI::Range(1u, plan::limits::kMaxChannels))
      ->capture_default_str();
  app.add_option("--instances", options.pipeline.instances,
                 "into how many parts to cut every copy and reduction, each on channels of its own")
      ->check(CLI::Range(1u, plan::limits::kMaxChannels))
      ->capture_default_str();
  app.add_flag(
      "--order-through-ranks", options.pipeline.orderThroughRanks,
      "leave out waits that messages through other ranks imply; for transports that fence");
  app.add_option("--min-bytes", options.minBytes, "smallest size that the plan is meant for");
  app.add_option("--max-bytes", options.maxBytes, "largest size that the plan is meant for");
  auto flag = [&](const char *name, bool &value, const char *what) {
    app.add_flag_callback(
        name, [&value] { value = false; }, what);
  };
  flag("--no-multicast", options.pipeline.multicast, "send a value to each of several ranks apart");
  flag("--no-fuse", options.pipeline.fuse, "keep receiving, reducing and sending apart");
  flag("--no-aggregate", options.pipeline.aggregate, "keep messages of neighbouring chunks apart");
  app.add_flag("--verify-each", options.pipeline.verifyEach,
               "check the IR after each pass, too (slow)");
  app.add_flag("--print-pass-timing", options.pipeline.printTiming,
               "print the time of each pass to standard error");
}

Command addCompile(CLI::App &app, tools::CompileCommand &command) {
  CLI::App *sub = app.add_subcommand("compile", "compile an algorithm to a verified plan");
  addSourceOptions(*sub, command.options);
  addPlanOptions(*sub, command.options);
  sub->add_option(
         "-o,--output", command.output,
         "the file to write; a plan is CBOR if it ends in .cbor, else JSON; IR is bytecode "
         "if it ends in .mlirbc; - is standard output")
      ->capture_default_str();
  static const std::map<std::string, tools::Emit> kinds = {{"chunk", tools::Emit::Chunk},
                                                           {"inst", tools::Emit::Inst},
                                                           {"plan", tools::Emit::Plan},
                                                           {"dot", tools::Emit::Dot}};
  sub->add_option(
         "--emit", command.emit,
         "what to write: chunk (what moves), inst (who moves it), plan, or dot (a picture)")
      ->transform(CLI::CheckedTransformer(kinds, CLI::ignore_case).description(""))
      ->option_text("TEXT [plan]");
  sub->add_flag("--stats", command.stats, "print what was proved of the plan to standard error");
  return {sub, [&] { return tools::compile(command); }};
}

Command addFmt(CLI::App &app, tools::FmtCommand &command) {
  CLI::App *sub = app.add_subcommand("fmt", "lay out .coll files in the one canonical way");
  sub->add_option("files", command.paths, ".coll files; none or - is standard input");
  auto *inPlace = sub->add_flag("-i,--in-place", command.inPlace, "replace the files");
  sub->add_flag("--check", command.check, "write nothing; fail if a file has another layout")
      ->excludes(inPlace);
  return {sub, [&] { return tools::fmt(command); }};
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Compiles collectives written in the .coll language to plans.", "occlc");
  app.footer(kExamples);
  app.require_subcommand(1);

  tools::CompileCommand compile;
  std::vector<Command> commands = {addCompile(app, compile)};

  driver::CompileOptions checked;
  CLI::App *check = app.add_subcommand("check", "compile without output; say what was proved, or "
                                                "what is wrong");
  addSourceOptions(*check, checked);
  addPlanOptions(*check, checked);
  commands.push_back({check, [&] { return tools::check(checked); }});

  std::string path;
  CLI::App *verify =
      app.add_subcommand("verify", "prove a plan file, or say what is wrong with it");
  verify->add_option("plan", path, "a plan, JSON or CBOR")->required();
  commands.push_back({verify, [&] { return tools::verify(path); }});

  std::optional<uint32_t> rank;
  CLI::App *explain = app.add_subcommand("explain", "print what a plan does, for people");
  explain->add_option("plan", path, "a plan, JSON or CBOR")->required();
  explain->add_option("--rank", rank, "only this rank");
  commands.push_back({explain, [&] { return tools::explain(path, rank); }});

  tools::FmtCommand fmt;
  commands.push_back(addFmt(app, fmt));

  CLI::App *limits = app.add_subcommand("limits", "print what a plan may use at most");
  commands.push_back({limits, tools::printLimits});

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const Command &command : commands)
    if (command.app->parsed())
      return command.run();
  return 2;
}
