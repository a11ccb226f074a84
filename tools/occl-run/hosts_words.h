// occl-run's command line for several machines.
#pragma once

#include "tools/occl-run/hosts/hosts_launcher.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace occl::run {

struct HostsWords {
  std::string hosts; // empty: this machine alone
  std::string rsh, launchAgent, folder, address;
  std::vector<std::string> variables; // "NAME" or "NAME=value"
  uint32_t startTimeoutMs = 30000;
};

void addHostsOptions(CLI::App &app, HostsWords &words);

/// All but the command. Nothing, after a line on standard error, if they make no sense.
std::optional<HostsOptions> hostsOptions(const HostsWords &words, uint32_t numRanks);

} // namespace occl::run
