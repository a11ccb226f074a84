#include "tools/occl-run/hosts_words.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <sstream>
#include <system_error>

namespace occl::run {
namespace {

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

} // namespace

void addHostsOptions(CLI::App &app, HostsWords &words) {
  // In help they stand together.
  const char *group = "On several machines";
  app.add_option("--hosts", words.hosts,
                 "machines, as a,b or a:4,b:4 with the number of ranks that each may have; ranks "
                 "have consecutive numbers on each")
      // As of a variable that is not set: without --hosts all ranks would be here.
      ->check(CLI::Validator(
          [](const std::string &hosts) { return hosts.empty() ? "it names no host" : ""; }, ""))
      ->group(group);
  app.add_option("--rsh", words.rsh,
                 "what starts a command on a machine: HOST and COMMAND follow; default "
                 "OCCL_RUN_RSH, else ssh, which must need no password")
      ->group(group);
  app.add_option("-x,--export", words.variables,
                 "NAME or NAME=VALUE: a variable for the ranks; those of OCCL are always there")
      ->take_all()
      ->allow_extra_args(false) // the next word is the program
      ->group(group);
  app.add_option("--wdir", words.folder, "where the ranks work; default: this folder")
      ->group(group);
  app.add_option("--address", words.address,
                 "of the first machine, by which the ranks reach it; default: what it says")
      ->group(group);
  app.add_option("--launch-agent", words.launchAgent,
                 "occl-run on the machines; default: where this one is")
      ->group(group);
  app.add_option("--start-timeout", words.startTimeoutMs,
                 "milliseconds that a machine has to answer; default 30000")
      ->check(CLI::Range(1, 3600000))
      ->group(group);
}

std::optional<HostsOptions> hostsOptions(const HostsWords &words, uint32_t numRanks) {
  HostsOptions options;
  // The first problem is found in the order of the options, but only one is printed.
  std::string problem;
  options.places = placeRanks(words.hosts, numRanks, problem);
  for (const std::string &variable : words.variables) {
    const char *value = std::getenv(variable.c_str());
    // NAME=VALUE is taken as it is; NAME alone takes the value from here.
    if (variable.find('=') != std::string::npos)
      options.environment.push_back(variable);
    else if (value)
      options.environment.push_back(variable + "=" + value);
    else
      problem = "-x " + variable + ": this variable is not set";
  }
  // The option, the environment, ssh: in this order.
  const char *ofEnvironment = std::getenv("OCCL_RUN_RSH");
  options.startProgram = wordsOf(!words.rsh.empty() ? words.rsh
                                 : ofEnvironment    ? ofEnvironment
                                                    : "");
  if (options.startProgram.empty())
    options.startProgram = defaultStartProgram();
  std::error_code error;
  // The same path as here, as installations mostly are the same on all machines.
  options.agent = !words.launchAgent.empty()
                      ? words.launchAgent
                      : std::filesystem::read_symlink("/proc/self/exe", error).string();
  options.folder =
      !words.folder.empty() ? words.folder : std::filesystem::current_path(error).string();
  options.address = words.address;
  options.startTimeout = std::chrono::milliseconds(words.startTimeoutMs);
  if (problem.empty())
    return options;
  fmt::print(stderr, "occl-run: {}\n", problem);
  return std::nullopt;
}

} // namespace occl::run
