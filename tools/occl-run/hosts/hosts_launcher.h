// Starts the ranks of a job on several machines, and sees to it that none outlives it.
#pragma once

#include "tools/occl-run/hosts/places.h"

#include <chrono>
#include <string>
#include <vector>

namespace occl::run {

struct HostsOptions {
  std::vector<Place> places;
  std::vector<std::string> command;
  /// "NAME=value", for the ranks, beside OCCL's own variables of this process.
  std::vector<std::string> environment;
  /// The program that runs a command on a host, and its arguments; the host and the command follow.
  std::vector<std::string> startProgram;
  /// Path of occl-run on the hosts.
  std::string agent;
  /// In which the ranks work.
  std::string folder;
  /// At which the ranks reach rank 0's machine; empty: what the machine says.
  std::string address;
  bool tagOutput = false;
  std::chrono::milliseconds grace{5000};
  /// In which each host has to answer.
  std::chrono::milliseconds startTimeout{30000};
};

/// ssh, with options such that it asks nothing and notices a host that is gone.
std::vector<std::string> defaultStartProgram();

/// As launch(), on several machines. A host that cannot be reached, on which a rank cannot be
/// started, or the connection to which ends, is an error that names it.
int launchOnHosts(const HostsOptions &options);

} // namespace occl::run
