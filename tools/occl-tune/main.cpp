// occl-tune, `occl tune`: measures the library's plans on this machine and writes a plan table.
#include "support/writable.h"
#include "tools/command_line/app.h"
#include "tools/occl-tune/measure.h"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace occl;
using occl::tune::Case;

constexpr const char *kHead = "OCCL plan table 1\n";
/// Another plan than the library's takes its place if it is so much faster: less is noise.
constexpr double kWorthIt = 0.95;

struct Options {
  uint32_t numRanks = 2;
  std::vector<std::string> collectives;
  uint64_t maxBytes = 4 << 20;
  uint32_t rounds = 3;
  std::string output = "plans.table";
};

int fail(const std::string &why) {
  fmt::print(stderr, "occl tune: {}\n", why);
  return 1;
}

int failToWrite(const std::string &path, const std::string &why) {
  return fail(fmt::format("cannot write '{}': {}", path, why));
}

std::string rowOf(const Case &of, const std::string &limit, const std::string &algorithm,
                  size_t plan) {
  return fmt::format("host-ordinary {} {} {} {} {}\n", nameOf(of.kind), of.numRanks, limit,
                     algorithm, plan + 1);
}

/// Of one collective: for each plan the best of the rounds by size.
using Times = std::vector<std::vector<double>>;

std::optional<Times> measureAll(const Case &of, const std::vector<std::string> &algorithms,
                                uint32_t rounds) {
  // Rounds go over all plans, so that a disturbance of some seconds hits a round of several plans
  // rather than all rounds of one. The best of the rounds counts.
  Times best(algorithms.size(), std::vector<double>(of.sizes.size(), 1e300));
  for (uint32_t round = 0; round < rounds; ++round)
    for (size_t plan = 0; plan < algorithms.size(); ++plan) {
      const auto times = measure(of, kHead + rowOf(of, "-", algorithms[plan], plan));
      if (!times)
        return std::nullopt;
      for (size_t size = 0; size < times->size(); ++size)
        best[plan][size] = std::min(best[plan][size], (*times)[size]);
    }
  return best;
}

/// Which plan each size has, then rows for those that have the same. Larger sizes than the measured
/// ones have none, so that the library chooses.
std::string tableOf(const Case &of, const std::vector<std::string> &algorithms, const Times &times,
                    const std::vector<size_t> &usual) {
  std::string comments, rows;
  size_t before = algorithms.size();
  // From the largest size down: a row says "up to so many bytes", and is needed only where the
  // choice changes.
  for (size_t size = of.sizes.size(); size-- > 0;) {
    // The library's own choice stays unless another one is clearly faster, since measurements vary.
    size_t chosen = usual[size];
    for (size_t plan = 0; plan < algorithms.size(); ++plan)
      if (times[plan][size] < kWorthIt * times[usual[size]][size] &&
          times[plan][size] < times[chosen][size])
        chosen = plan;
    // All times are kept as comments, for whoever wonders about a row.
    std::string comment = fmt::format("# {} {} {}:", nameOf(of.kind), of.numRanks, of.sizes[size]);
    for (size_t plan = 0; plan < algorithms.size(); ++plan)
      comment += fmt::format(" {} {:.1f}", plan + 1, times[plan][size]);
    comments = fmt::format("{} us, library {}\n", comment, usual[size] + 1) + comments;
    if (chosen != before)
      rows = rowOf(of, std::to_string(of.sizes[size]), algorithms[chosen], chosen) + rows;
    before = chosen;
  }
  return comments + rows;
}

/// The collectives without those that are named before: a table has a section for each.
std::vector<std::string> onceEach(const std::vector<std::string> &names) {
  std::vector<std::string> once;
  for (const std::string &name : names)
    if (std::ranges::find(once, name) == once.end())
      once.push_back(name);
  return once;
}

/// The numbers, less one, of the plans that the library has for these sizes.
std::optional<std::vector<size_t>> usualPlans(const Case &of, size_t numPlans) {
  auto &library = plan_library::PlanLibrary::ofProcess();
  std::vector<size_t> usual;
  // What the library would choose by itself, for each size.
  for (const uint64_t bytes : of.sizes) {
    const auto number =
        library.numberFor({of.kind, of.numRanks, bytes, 0, plan_library::PlanClass::HostOrdinary});
    if (!number.ok() || *number > numPlans) {
      fail(number.ok() ? "a plan without number" : number.status().message());
      return std::nullopt;
    }
    usual.push_back(*number - 1);
  }
  return usual;
}

std::optional<plan_library::Kind> kindOf(const std::string &name) {
  for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
    if (name == nameOf(static_cast<plan_library::Kind>(kind)))
      return static_cast<plan_library::Kind>(kind);
  return std::nullopt;
}

/// The rows of all collectives; nothing after an error, which was printed.
std::optional<std::string> tuneAll(const Options &options) {
  unsetenv("OCCL_PLAN_TABLE"); // what is looked for is what the library has
  std::string table;
  for (const std::string &name : onceEach(options.collectives)) {
    Case of{*kindOf(name), options.numRanks, {}};
    // Powers of 4: between two of them the better plan hardly changes twice.
    for (uint64_t bytes = 64; bytes <= options.maxBytes; bytes *= 4)
      of.sizes.push_back(bytes);
    const auto algorithms = plan_library::PlanLibrary::ofProcess().algorithmsFor(
        of.kind, of.numRanks, plan_library::PlanClass::HostOrdinary);
    if (!algorithms.ok() || algorithms->empty()) {
      fail(algorithms.ok() ? fmt::format("the library has no plans for {} ranks", of.numRanks)
                           : algorithms.status().message());
      return std::nullopt;
    }
    const auto usual = usualPlans(of, algorithms->size());
    const auto times = usual ? measureAll(of, *algorithms, options.rounds) : std::nullopt;
    if (!times)
      return std::nullopt;
    // Printed as they are found: the whole takes minutes.
    const std::string rows = tableOf(of, *algorithms, *times, *usual);
    fmt::print("{}", rows);
    std::fflush(stdout);
    table += rows;
  }
  return table;
}

/// An earlier table stays until there is another one. That none can be written is said before the
/// minutes of measuring.
int writeTable(const Options &options) {
  const std::string begin =
      std::string("# Made by occl tune: microseconds of each plan, by size.\n") + kHead;
  const bool isPrinted = options.output == "-";
  if (isPrinted) {
    fmt::print("{}", begin);
    std::fflush(stdout); // not once more by each rank's process
  } else if (const std::string why = whyNotWritable(options.output); !why.empty())
    return failToWrite(options.output, why);
  // The rows are printed as they are found.
  const std::optional<std::string> rows = tuneAll(options);
  if (!rows)
    return 1;
  if (isPrinted)
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0
               ? 0
               : fail("cannot write to standard output");
  std::ofstream out(options.output);
  out << begin << *rows;
  if (!out.flush())
    return failToWrite(options.output, std::strerror(errno));
  fmt::print("OCCL_PLAN_TABLE={} makes the library use it\n", options.output);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{
      "Measures the plans that the library has for collectives on this machine, with a process "
      "for each rank, and writes a plan table (docs/tools.md) that OCCL_PLAN_TABLE names.",
      "occl tune"};
  tools::prepare(app);
  Options options;
  // All collectives that the library has plans for.
  for (uint32_t kind = 0; kind < plan_library::kNumKinds; ++kind)
    options.collectives.emplace_back(nameOf(static_cast<plan_library::Kind>(kind)));
  app.add_option("-n,--ranks", options.numRanks, "processes")
      ->check(CLI::Range(2u, maxRanks(plan_library::PlanClass::HostOrdinary)))
      ->capture_default_str();
  app.add_option("--collectives", options.collectives, "which, with commas between them; all")
      ->delimiter(',')
      ->check(CLI::IsMember(options.collectives));
  app.add_option("--max-bytes", options.maxBytes, "the largest part that is measured")
      ->check(CLI::Range(uint64_t{64}, uint64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "of each plan; the fastest counts")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  app.add_option("-o,--output", options.output, "the table; - is standard output")
      ->capture_default_str();
  app.footer("Of plans that are as fast, to 5 %, the library's own choice stays. Nothing else\n"
             "should run meanwhile.\n"
             "Exit status: 0; 1 if something cannot be measured or written; 2 after an error\n"
             "in this command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return error.get_exit_code() == 0 ? 0 : 2;
  }
  return writeTable(options);
}
