// occlc: the compiler's command line.
#include "tools/occlc/commands.h"
#include "tools/occlc/explain.h"
#include "tools/occlc/fmt_command.h"
#include "tools/occlc/heap.h"
#include "tools/occlc/output.h"
#include "tools/occlc/trace.h"
#include "tools/occlc/view.h"

#include "compiler/driver/Printing.h"
#include "plan/model/limits.h"
#include "support/parallel.h"
#include "support/suggestion.h"
#include "tools/command_line/number.h"
#include "tools/occlc/export_command.h"
#include "tools/occlc/import_command.h"
#include "tools/occlc/words.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <thread>

namespace {

using namespace occl;

constexpr const char *kExamples = R"(Examples:
  occlc compile ring.coll -D ranks=8 -o ring.plan.json
  occlc compile ring.coll -D ranks=8 -o ring.plan.cbor --max-thread-blocks 2 --stats
  occlc compile ring.coll -D ranks=4 --emit=dot | dot -Tsvg > ring.svg
  occlc check ring.coll -D ranks=8
  occlc import msccl_ring.xml -o ring.plan.json
  occlc explain ring.plan.json --rank 3
  occlc fmt -i ring.coll
  occlc trace ring.plan.json --bytes 1MiB -o ring.trace.json
  occlc stats ring.plan.json --bytes 1MiB --bytes 64MiB
Exit status: 0, 1 after an error in the input, 2 after an error in the command line.)";

/// More gain nothing: much of a compilation is one thread's work.
constexpr unsigned kMostThreads = 4;

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
  app.add_option("--topology", options.topology,
                 "a file with the topology that it is for; -D sets its parameters, too");
  app.add_flag("--werror", options.warningsAreErrors, "fail where there is a warning");
  app.add_option("--max-ops", options.maxOps,
                 "reads, copies and reductions that a program may consist of; without it "
                 "4194304, or four for each pair of ranks if that is more")
      ->transform(tools::wholeNumber());
}

/// What is wrong with a command line. CLI11 says of a word that is no command only that there is
/// none.
std::string whatIsWrong(const CLI::ParseError &error, const CLI::App &app,
                        const std::vector<std::string> &arguments) {
  if (dynamic_cast<const CLI::RequiredError *>(&error) == nullptr || arguments.size() < 2 ||
      !app.get_subcommands().empty() || arguments[1].starts_with("-"))
    return error.what();
  std::vector<std::string_view> names;
  for (const CLI::App *command : app.get_subcommands({}))
    names.push_back(command->get_name());
  return "there is no command '" + arguments[1] + "'" +
         plan::didYouMean(plan::suggest(arguments[1], names));
}

/// Prints what is wrong with a command line; returns the exit status.
int refuse(const CLI::ParseError &error, const CLI::App &app,
           const std::vector<std::string> &arguments) {
  // What the line says of the format was not taken over, as the line is wrong.
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

/// An option whose value can be left to what `word` names; `set` is false for what is no value.
CLI::Option *addChosen(CLI::App &app, const char *name, const char *word, const char *what,
                       bool &isChosen, std::function<bool(const std::string &)> set) {
  return app.add_option_function<std::string>(
      name,
      [&isChosen, set, name, word](const std::string &text) {
        isChosen = text == word;
        if (!isChosen && !set(text))
          throw CLI::ValidationError(name, "'" + text + "' is no value of this option");
      },
      what);
}

/// What the cost model chooses if it is asked to, unless it is said here.
void addTactics(CLI::App &app, driver::PipelineOptions &pipeline) {
  auto flag = [&](const char *name, bool &value, const char *what) {
    app.add_flag_callback(
        name, [&value] { value = false; }, what);
  };
  flag("--no-multicast", pipeline.multicast, "send a value to each of several ranks apart");
  flag("--no-aggregate", pipeline.aggregate, "keep messages of neighbouring chunks apart");
  auto choice = [&](const char *yes, const char *no, std::optional<bool> &value, const char *what,
                    const char *otherwise) {
    auto *flag = app.add_flag_callback(
        yes, [&value] { value = true; }, what);
    app.add_flag_callback(
           no, [&value] { value = false; }, otherwise)
        ->excludes(flag);
  };
  choice("--aggregate-local", "--no-aggregate-local", pipeline.aggregateLocal,
         "join local copies and reductions of neighbouring chunks, also those of several instances",
         "keep local copies and reductions of neighbouring chunks apart, as those of several "
         "instances are");
  flag("--no-fold-arrivals", pipeline.foldArrivals,
       "store what arrives before it is reduced, so that several thread blocks receive");
  app.add_flag("--share-channels", pipeline.shareChannels,
               "leave the parts that --instances makes on the channels of the source");
  app.add_option("--max-fan-out", pipeline.maxFanOut,
                 "values that go on in more messages are sent apart from what computes them")
      ->check(CLI::Range(1u, plan::limits::kMaxOperands))
      ->capture_default_str();
  std::vector<std::pair<std::string, std::string>> layouts;
  for (const char *layout : {"auto", "balanced", "phases", "peers", "earliest"})
    layouts.emplace_back(layout, layout);
  tools::addWord(app, "--layout", pipeline.layout, layouts,
                 "what thread blocks have in common: balanced (as much work), phases (its time), "
                 "peers (the other ranks), earliest (whatever can begin), or auto");
  app.add_option("--colors", pipeline.colors,
                 "over how many thread blocks to spread flows; without it, as a schedule says")
      ->check(CLI::Range(1u, plan::limits::kMaxThreadBlocks));
  choice("--spread-local", "--no-spread-local", pipeline.spreadLocal,
         "distribute local copies and reductions over all thread blocks, as those of several "
         "instances are",
         "leave local copies and reductions, also those of several instances, with the message "
         "before them");
}

void addPlanOptions(CLI::App &app, driver::CompileOptions &options, driver::ChoiceOptions &choice) {
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
  addChosen(app, "--instances", "auto",
            "into how many parts to cut every copy and reduction, each on "
            "channels of its own; auto: as the prediction says",
            choice.instances, [&options](const std::string &text) {
              return tools::parseNumber(text, 1u, plan::limits::kMaxChannels,
                                        options.pipeline.instances);
            });
  addChosen(app, "--protocol", "auto",
            "simple, ll or ll128, whatever the source says; auto: as the prediction says",
            choice.protocol, [&options](const std::string &text) {
              options.protocol = text;
              return text == "simple" || text == "ll" || text == "ll128";
            });
  tools::addWord<driver::Tuning>(
      app, "--tune", choice.tuning,
      {{"auto", driver::Tuning::Auto}, {"on", driver::Tuning::On}, {"off", driver::Tuning::Off}},
      "try multicast, aggregation, fan-out and layouts, and keep what is predicted to be "
      "fastest: on, off, or auto, for small programs with a topology, and where local instructions "
      "go with --direct");
  tools::addWord<driver::AliasModes>(
      app, "--modes", options.modes,
      {{"all", driver::AliasModes::All},
       {"in_place", driver::AliasModes::InPlace},
       {"out_of_place", driver::AliasModes::OutOfPlace}},
      "how buffers may lie in memory: in_place, out_of_place, or all that the algorithm claims");
  addTactics(app, options.pipeline);
  app.add_flag(
      "--order-through-ranks", options.pipeline.orderThroughRanks,
      "leave out waits that messages through other ranks imply; for transports that fence");
  auto *direct = app.add_flag_callback(
      "--direct", [&options] { options.pipeline.directGroupSize = ~0u; },
      "let all ranks access each other's buffers: ranks that are threads of one process");
  addChosen(
      app, "--direct-groups", "topology",
      "the same for groups of so many consecutive ranks; topology: for those of a node of the "
      "topology that have links to each other",
      options.directInTopology,
      [&options](const std::string &text) {
        return tools::parseNumber(text, 2u, plan::limits::kMaxRanks,
                                  options.pipeline.directGroupSize);
      })
      ->excludes(direct);
  app.add_flag("--reassociate", options.pipeline.reassociate,
               "make one reduction of several, or several of one, which changes how often 16-bit "
               "floats are rounded");
  app.add_option("--min-bytes", options.minBytes, "smallest size that the plan is meant for")
      ->transform(tools::wholeNumber());
  app.add_option("--max-bytes", options.maxBytes, "largest size that the plan is meant for")
      ->transform(tools::wholeNumber());
  app.add_flag_callback(
      "--no-fuse", [&options] { options.pipeline.fuse = false; },
      "keep receiving, reducing and sending apart");
  app.add_flag("--verify-each", options.pipeline.verifyEach, "check the IR after each pass, too");
  app.add_flag("--print-pass-timing", options.pipeline.printTiming,
               "print the time of each pass to standard error");
}

Command addCompile(CLI::App &app, tools::CompileCommand &command) {
  CLI::App *sub = app.add_subcommand("compile", "compile an algorithm to a verified plan");
  addSourceOptions(*sub, command.options);
  addPlanOptions(*sub, command.options, command.choice);
  sub->add_option(
         "-o,--output", command.output,
         "the file to write; a plan is CBOR if it ends in .cbor, else JSON; IR is bytecode "
         "if it ends in .mlirbc; - is standard output")
      ->capture_default_str();
  tools::addWord<tools::Emit>(
      *sub, "--emit", command.emit,
      {{"chunk", tools::Emit::Chunk},
       {"inst", tools::Emit::Inst},
       {"plan", tools::Emit::Plan},
       {"dot", tools::Emit::Dot},
       {"trace", tools::Emit::Trace},
       {"msccl-xml", tools::Emit::MscclXml}},
      "what to write: chunk (what moves), inst (who moves it), plan, dot (a picture), trace "
      "(the predicted schedule), or msccl-xml");
  sub->add_flag("--stats", command.stats,
                "print what was proved of the plan, what it consists of and how long it is "
                "predicted to take, to standard error");
  tools::addBytesOption(*sub, command.prediction);
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
  tools::prepareHeap(argv);
  CLI::App app("Compiles collectives written in the .coll language to plans.", "occlc");
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough(); // what all commands have may stand behind them, too

  tools::CompileCommand compile;
  std::vector<Command> commands = {addCompile(app, compile)};

  tools::CompileCommand checked;
  CLI::App *check = app.add_subcommand("check", "compile without output; say what was proved, or "
                                                "what is wrong");
  addSourceOptions(*check, checked.options);
  addPlanOptions(*check, checked.options, checked.choice);
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
  plan::setNumThreads(numThreads);
  compile.options.diagnosticFormat = checked.options.diagnosticFormat = tools::diagnosticFormat();
  for (const Command &command : commands)
    if (command.app->parsed())
      return command.run();
  return 2;
}
