// occlc: the compiler's command line.
#include "tools/occlc/commands.h"
#include "tools/occlc/explain.h"
#include "tools/occlc/fmt_command.h"
#include "tools/occlc/heap.h"
#include "tools/occlc/options/compile_options.h"
#include "tools/occlc/output.h"
#include "tools/occlc/trace.h"
#include "tools/occlc/view.h"

#include "compiler/driver/Printing.h"
#include "support/parallel.h"
#include "support/suggestion.h"
#include "tools/command_line/app.h"
#include "tools/occlc/export_command.h"
#include "tools/occlc/import_command.h"
#include "tools/occlc/options/words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <thread>

namespace {

using namespace occl;

constexpr const char *kExamples = R"(Examples:
  occlc compile ring.coll -D ranks=8 -o ring.plan.json
  occlc compile ring.coll -D ranks=8 -o ring.plan.cbor --instances 2 --stats
  occlc compile ring.coll -D ranks=4 --emit=dot | dot -Tsvg > ring.svg
  occlc check ring.coll -D ranks=8
  occlc import msccl_ring.xml -o ring.plan.json
  occlc explain ring.plan.json --rank 3
  occlc fmt -i ring.coll
  occlc trace ring.plan.json --bytes 1MiB -o ring.trace.json
  occlc stats ring.plan.json --bytes 1MiB --bytes 64MiB
Exit status: 0, 1 after an error in the input, 2 after one in the command line.)";

/// More gain nothing: much of a compilation is one thread's work.
constexpr unsigned kMostThreads = 4;

/// A subcommand and what to do if it was given.
struct Command {
  CLI::App *app;
  std::function<int()> run;
};

/// What is wrong with a command line. CLI11 says of a word that is no command only that there is
/// none.
std::string whatIsWrong(const CLI::ParseError &error, const CLI::App &app,
                        const std::vector<std::string> &arguments) {
  if (dynamic_cast<const CLI::RequiredError *>(&error) == nullptr || arguments.size() < 2 ||
      !app.get_subcommands().empty() || arguments[1].starts_with("-"))
    return error.what();
  // The first word was meant as a command: names near it are suggested.
  std::vector<std::string_view> names;
  for (const CLI::App *command : app.get_subcommands({}))
    names.push_back(command->get_name());
  return "there is no command '" + arguments[1] + "'" +
         support::didYouMean(support::suggest(arguments[1], names));
}

/// Prints what is wrong with a command line; returns the exit status.
int refuse(const CLI::ParseError &error, const CLI::App &app,
           const std::vector<std::string> &arguments) {
  // What the line says of the format was not taken over, as the line is wrong.
  // Both spellings, with '=' and with a space.
  std::string all;
  for (const std::string &argument : arguments)
    all += (argument == "json" ? "=" : " ") + argument;
  bool isJson = all.find("--diag-format=json") != std::string::npos;
  bool isValue = dynamic_cast<const CLI::ValidationError *>(&error) != nullptr ||
                 dynamic_cast<const CLI::ConversionError *>(&error) != nullptr;
  driver::printError(whatIsWrong(error, app, arguments) +
                         std::string(isValue ? " [E025]" : " [E026]"),
                     isJson ? driver::DiagnosticFormat::Json : driver::DiagnosticFormat::Text);
  if (!isJson)
    std::cerr << "Run with --help for more information.\n";
  return 2;
}

Command addCompile(CLI::App &app, tools::CompileCommand &command) {
  CLI::App *sub = app.add_subcommand("compile", "compile an algorithm to a verified plan");
  // Source, plan, output: in this order they stand in help.
  tools::addSourceOptions(*sub, command.options);
  tools::addPlanOptions(*sub, command.options, command.autotune);
  sub->add_option(
         "-o,--output", command.output,
         "the file to write; a plan is CBOR if it ends in .cbor, else JSON; IR is bytecode "
         "if it ends in .mlirbc; - is standard output")
      ->capture_default_str();
  tools::addWord<tools::Emit>(
      *sub, "--emit", command.emit,
      {{"chunk", tools::Emit::Chunk},
       {"pipeline", tools::Emit::Pipeline},
       {"inst", tools::Emit::Inst},
       {"plan", tools::Emit::Plan},
       {"dot", tools::Emit::Dot},
       {"trace", tools::Emit::Trace},
       {"msccl-xml", tools::Emit::MscclXml}},
      "what to write: chunk (what moves), pipeline (the passes, as occl-opt --pass-pipeline takes "
      "them), inst (who moves it), plan, dot (a picture), trace (the predicted schedule), or "
      "msccl-xml");
  sub->add_flag("--stats", command.stats,
                "print what was proved of the plan, what it consists of and how long it is "
                "predicted to take, to standard error");
  tools::addBytesOption(*sub, command.prediction);
  // What it does once the line has been read; there is one action for each command.
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
  // May start this process again.
  tools::prepareHeap(argv);
  CLI::App app("Compiles collectives written in the .coll language to plans.", "occlc");
  tools::prepare(app);
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough(); // what all commands have may stand behind them, too

  tools::CompileCommand compile;
  std::vector<Command> commands = {addCompile(app, compile)};

  tools::CompileCommand checked;
  CLI::App *check = app.add_subcommand("check", "compile without output; say what was proved, or "
                                                "what is wrong");
  tools::addSourceOptions(*check, checked.options);
  tools::addPlanOptions(*check, checked.options, checked.autotune);
  tools::addBytesOption(*check, checked.prediction);
  commands.push_back({check, [&] { return tools::check(checked); }});

  tools::ImportCommand import;
  commands.push_back({tools::addImport(app, import), [&] { return tools::importPlan(import); }});
  tools::ExportCommand exported;
  commands.push_back(
      {tools::addExport(app, exported), [&] { return tools::exportPlan(exported); }});

  std::string path;
  CLI::App *verify =
      app.add_subcommand("verify", "prove a plan file, or say what is wrong with it");
  verify->add_option("plan", path, "a plan, JSON or CBOR")->required();
  commands.push_back({verify, [&] { return tools::verify(path); }});

  tools::ExplainCommand explain;
  commands.push_back({tools::addExplain(app, explain), [&] { return tools::explain(explain); }});
  tools::TraceCommand trace;
  commands.push_back({tools::addTrace(app, trace), [&] { return tools::trace(trace); }});

  tools::ViewCommand view;
  commands.push_back({tools::addView(app, view), [&] { return tools::view(view); }});

  tools::FmtCommand fmt;
  commands.push_back(addFmt(app, fmt));
  tools::PredictionOptions prediction;
  CLI::App *stats = app.add_subcommand(
      "stats", "print what a plan consists of and how long it is predicted to take");
  stats->add_option("plan", path, "a plan, JSON or CBOR")->required();
  tools::addPredictionOptions(*stats, prediction);
  commands.push_back({stats, [&] { return tools::stats(path, prediction); }});

  CLI::App *limits = app.add_subcommand("limits", "print what a plan may use at most");
  commands.push_back({limits, tools::printLimits});

  // More threads than that bring nothing, and tests run side by side.
  unsigned numThreads = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  app.add_option("--threads", numThreads,
                 "threads that may work side by side, by default one for each processor, at most "
                 "4; the result is the same with any number")
      ->check(CLI::Range(1u, kMostThreads));
  tools::addWord<driver::DiagnosticFormat>(
      app, "--diag-format", tools::diagnosticFormat(),
      {{"text", driver::DiagnosticFormat::Text}, {"json", driver::DiagnosticFormat::Json}},
      "how errors are printed: text, or json, an object a line");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &wish) {
    return app.exit(wish);
  } catch (const CLI::ParseError &error) {
    return refuse(error, app, {argv, argv + argc});
  }
  // Before any command, since loops read it.
  support::setNumThreads(numThreads);
  compile.options.diagnosticFormat = checked.options.diagnosticFormat = tools::diagnosticFormat();
  // Exactly one was parsed: the line would not have been accepted otherwise.
  for (const Command &command : commands)
    if (command.app->parsed())
      return command.run();
  return 2;
}
