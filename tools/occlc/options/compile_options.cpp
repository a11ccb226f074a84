#include "tools/occlc/options/compile_options.h"

#include "plan/model/limits.h"
#include "tools/command_line/number.h"
#include "tools/occlc/options/words.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace occl::tools {

void addSourceOptions(CLI::App &app, driver::CompileOptions &options) {
  // The source and what it is compiled with; options of the plan come after these.
  app.add_option("file", options.path, "a .coll file, or IR (.mlir, .mlirbc)")->required();
  app.add_option("-D,--define", options.defines, "a parameter's value: name=value")
      // One value each time: the next word may be a file.
      ->allow_extra_args(false);
  app.add_option("-I,--import-path", options.importPaths, "a folder in which to look for imports")
      ->type_name("PATH")
      ->allow_extra_args(false);
  app.add_option("--algorithm", options.algorithm,
                 "which algorithm of the file, if it has several");
  app.add_option("--topology", options.topology,
                 "a file with the topology that it is for; -D sets its parameters, too");
  app.add_flag("--werror", options.warningsAreErrors, "fail where there is a warning");
  app.add_option("--max-ops", options.maxOps,
                 "reads, copies and reductions that a program may consist of; without it "
                 "4194304, or four for each pair of ranks if that is more")
      ->transform(wholeNumber());
}

namespace {

/// An option whose value can be left to what `word` names; `set` is false for what is no value,
/// `kind` is what help calls the values.
CLI::Option *addChosen(CLI::App &app, const char *name, const char *word, const char *kind,
                       const char *what, bool &isChosen,
                       std::function<bool(const std::string &)> set) {
  return app
      .add_option_function<std::string>(
          name,
          // The word of the option for "choose", else a value that `set` takes.
          [&isChosen, set, name, word](const std::string &text) {
            isChosen = text == word;
            if (!isChosen && !set(text))
              throw CLI::ValidationError(name, "'" + text + "' is no value of this option");
          },
          what)
      ->type_name(kind);
}

/// --name, or --no-name where true is usual.
void addSwitch(CLI::App &app, const std::string &name, bool &value, const char *what) {
  app.add_flag_callback((value ? "--no-" : "--") + name,
                        [&value, usual = value] { value = !usual; }, what);
}

void addEither(CLI::App &app, const std::string &name, std::optional<bool> &value, const char *yes,
               const char *no) {
  auto *flag = app.add_flag_callback(
      "--" + name, [&value] { value = true; }, yes);
  app.add_flag_callback(
         "--no-" + name, [&value] { value = false; }, no)
      ->excludes(flag);
}

/// The usual value is shown if it is one that can be given.
void addNumber(CLI::App &app, const std::string &name, uint32_t &value, uint32_t least,
               uint32_t most, const char *what) {
  CLI::Option *option = app.add_option("--" + name, value, what)->check(CLI::Range(least, most));
  if (value >= least && value <= most)
    option->capture_default_str();
}

/// `words` are divided by '|'.
void addWordOf(CLI::App &app, const char *name, std::string &value, const std::string &words,
               const char *what) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const std::string &word : CLI::detail::split(words, '|'))
    list.emplace_back(word, word);
  addWord(app, name, value, list, what);
}

/// PipelineOptions.def, but for what has options of other kinds.
void addPipelineOptions(CLI::App &app, driver::PipelineOptions &pipeline) {
#define OCCL_PASS_SWITCH(member, name, usual, help) addSwitch(app, name, pipeline.member, help);
#define OCCL_PASS_EITHER(member, name, effective, yes, no)                                         \
  addEither(app, name, pipeline.member, yes, no);
#define OCCL_PASS_NUMBER(member, name, usual, least, most, help)                                   \
  addNumber(app, name, pipeline.member, least, most, help);
#define OCCL_PASS_OWN_NUMBER(member, name, usual, least, most, help)
#define OCCL_PASS_WORD(member, name, usual, words, help)                                           \
  addWordOf(app, "--" name, pipeline.member, words, help);
#include "compiler/driver/PipelineOptions.def"
}

/// What may also be left to the prediction.
void addChoices(CLI::App &app, driver::CompileOptions &options, driver::AutotuneOptions &asked) {
  // `set` returns false for what is no value; CLI11 then prints its message.
  addChosen(app, "--instances", "auto", "UINT|auto",
            "into how many parts to cut every copy and reduction, each on "
            "channels of its own; auto: as the prediction says",
            asked.instances, [&options](const std::string &text) {
              return parseNumber(text, 1u, plan::limits::kMaxChannels, options.pipeline.instances);
            });
  addChosen(app, "--protocol", "auto", "TEXT",
            "simple, ll or ll128, whatever the source says; auto: as the prediction says",
            asked.protocol, [&options](const std::string &text) {
              options.protocol = text;
              return text == "simple" || text == "ll" || text == "ll128";
            });
  addWord<driver::Tuning>(
      app, "--tune", asked.tuning,
      {{"auto", driver::Tuning::Auto}, {"on", driver::Tuning::On}, {"off", driver::Tuning::Off}},
      "try multicast, aggregation, fan-out and layouts, and keep what is predicted to be "
      "fastest: on, off, or auto, for small programs with a topology, and where local instructions "
      "go with --direct");
}

/// What the plan says of itself.
void addHeaderOptions(CLI::App &app, driver::CompileOptions &options) {
  app.add_option("--depth", options.depth,
                 "messages in flight on a connection; raised if the program needs more")
      ->check(CLI::Range(1u, plan::limits::kMaxDepth));
  addWord<driver::AliasModes>(
      app, "--modes", options.modes,
      {{"all", driver::AliasModes::All},
       {"in_place", driver::AliasModes::InPlace},
       {"out_of_place", driver::AliasModes::OutOfPlace}},
      "how buffers may lie in memory: in_place, out_of_place, or all that the algorithm claims");
  app.add_option("--min-bytes", options.minBytes, "smallest size that the plan is meant for")
      ->transform(wholeNumber());
  app.add_option("--max-bytes", options.maxBytes, "largest size that the plan is meant for")
      ->transform(wholeNumber());
}

void addDirectAccess(CLI::App &app, driver::CompileOptions &options) {
  // The group of all ranks, whatever their number is.
  auto *direct = app.add_flag_callback(
      "--direct", [&options] { options.pipeline.directGroupSize = ~0u; },
      "let all ranks access each other's buffers: ranks that are threads of one process");
  addChosen(
      app, "--direct-groups", "topology", "UINT|topology",
      "the same for groups of so many consecutive ranks; topology: for those of a node of the "
      "topology that have links to each other",
      options.directInTopology,
      [&options](const std::string &text) {
        return parseNumber(text, 2u, plan::limits::kMaxRanks, options.pipeline.directGroupSize);
      })
      ->excludes(direct);
}

} // namespace

void addPlanOptions(CLI::App &app, driver::CompileOptions &options,
                    driver::AutotuneOptions &asked) {
  addHeaderOptions(app, options);
  addChoices(app, options, asked);
  addPipelineOptions(app, options.pipeline);
  addDirectAccess(app, options);
  app.add_flag("--verify-each", options.pipeline.verifyEach, "check the IR after each pass, too");
  app.add_flag("--print-pass-timing", options.pipeline.printTiming,
               "print the time of each pass to standard error");
}

} // namespace occl::tools
