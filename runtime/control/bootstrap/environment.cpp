// Finds out by environment variables which rank of which job this process is.
#include "runtime/base/environment_number.h"
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/bootstrap/launcher_address.h"
#include "runtime/control/bootstrap/name.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace occl::bootstrap {
namespace {

/// Where one launcher puts what we need. localSize may be nullptr: the launcher does not say.
struct Launcher {
  const char *title;
  const char *rank;
  const char *size;
  const char *localSize; // ranks (or, for Slurm, hosts: see numHosts) on this machine
  const char *numHosts;
  /// Together they tell this job from all others on the machine; the first must be set.
  std::initializer_list<const char *> job;
  /// How often the ranks of this machine were started again; may be nullptr.
  const char *restarts;
};

const Launcher kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     nullptr,
     {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"},
     "TORCHELASTIC_RESTART_COUNT"},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {"PMIX_NAMESPACE"},
     nullptr},
    {"srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     nullptr,
     "SLURM_STEP_NUM_NODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     nullptr},
};

Status invalid(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }

StatusOr<uint32_t> readNumber(EnvironmentLookup lookup, const char *variable) {
  const char *text = lookup(variable);
  if (!text)
    return invalid(std::string("environment variable ") + variable + " is not set");
  const auto value = numberFrom(text, 0, UINT32_MAX);
  if (!value)
    return invalid(std::string("environment variable ") + variable + " is '" + text +
                   "', expected a number");
  return static_cast<uint32_t>(*value);
}

StatusOr<Identity> readRankAndSize(EnvironmentLookup lookup, const char *rank, const char *size) {
  auto rankValue = readNumber(lookup, rank);
  if (!rankValue.ok())
    return rankValue.status();
  auto sizeValue = readNumber(lookup, size);
  if (!sizeValue.ok())
    return sizeValue.status();
  if (*sizeValue == 0 || *sizeValue > kMaxRanks)
    return invalid(std::string(size) + " is " + std::to_string(*sizeValue) + ", expected 1 to " +
                   std::to_string(kMaxRanks));
  if (*rankValue >= *sizeValue)
    return invalid(std::string(rank) + " is " + std::to_string(*rankValue) +
                   ", expected less than " + size + ", which is " + std::to_string(*sizeValue));
  return Identity{*rankValue, *sizeValue, ""};
}

/// FNV-1a: short names for whatever the launcher's variables hold.
uint64_t hashText(uint64_t hash, std::string_view text) {
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

constexpr uint64_t kHashOfNothing = 0xcbf29ce484222325ull;

bool hasOtherMachines(EnvironmentLookup lookup, const Launcher &launcher) {
  const char *local = launcher.localSize ? lookup(launcher.localSize) : nullptr,
             *size = lookup(launcher.size);
  return local && size && std::string_view(local) != size;
}

uint64_t hashJob(EnvironmentLookup lookup, const Launcher &launcher) {
  uint64_t hash = kHashOfNothing;
  const auto add = [&](const char *variable) {
    const char *value = lookup(variable);
    hash = hashText(hashText(hash, value ? value : ""), "\n");
  };
  for (const char *variable : launcher.job)
    add(variable);
  // The launcher's agent on each machine counts for itself: after the failure of a rank of one of
  // them the numbers of one job may differ.
  if (launcher.restarts && !hasOtherMachines(lookup, launcher))
    add(launcher.restarts);
  return hash;
}

StatusOr<std::string> jobName(EnvironmentLookup lookup, const Launcher &launcher) {
  const char *first = *launcher.job.begin();
  if (!lookup(first))
    return invalid(std::string(launcher.title) + " started this process (" + launcher.rank +
                   " is set), but " + first + " is not set");
  uint64_t hash = hashJob(lookup, launcher);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return std::string(launcher.title) + "-" + text;
}

constexpr const char *kSeveralMachines =
    "for ranks of several machines set OCCL_COMM_ID to HOST:PORT, a free port of rank 0's machine, "
    "and OCCL_SECRET";

/// What the launcher says of ranks on other machines; "": all are here, or it does not say.
StatusOr<std::string> describeOthers(EnvironmentLookup lookup, const Launcher &launcher,
                                     uint32_t numRanks) {
  if (launcher.localSize && lookup(launcher.localSize)) {
    auto local = readNumber(lookup, launcher.localSize);
    if (!local.ok())
      return local.status();
    if (*local != numRanks)
      return "this machine has " + std::to_string(*local) + " of " + std::to_string(numRanks) +
             " ranks (" + launcher.localSize + ")";
  }
  if (launcher.numHosts && lookup(launcher.numHosts)) {
    auto hosts = readNumber(lookup, launcher.numHosts);
    if (!hosts.ok())
      return hosts.status();
    if (*hosts != 1)
      return "the ranks are on " + std::to_string(*hosts) + " machines (" + launcher.numHosts + ")";
  }
  return std::string();
}

const char *ownEnvironment(const char *variable) { return std::getenv(variable); }

StatusOr<Identity> fromLauncher(EnvironmentLookup lookup, const Launcher &launcher) {
  auto identity = readRankAndSize(lookup, launcher.rank, launcher.size);
  if (!identity.ok())
    return identity;
  auto others = describeOthers(lookup, launcher, identity->numRanks);
  if (!others.ok())
    return others.status();
  if (!others->empty()) {
    const bool isSrun = launcher.numHosts != nullptr;
    identity->name = addressFromLauncher(lookup, isSrun ? std::optional(hashJob(lookup, launcher))
                                                        : std::nullopt);
    return identity->name.empty() ? StatusOr<Identity>(invalid(*others + "; " + kSeveralMachines))
                                  : identity;
  }
  auto name = jobName(lookup, launcher);
  if (!name.ok())
    return name.status();
  identity->name = *name;
  return identity;
}

/// Ranks of several machines: where they meet is given, who they are the launcher says.
StatusOr<Identity> fromAddress(EnvironmentLookup lookup, const char *address) {
  const char *rank = "OCCL_RANK", *size = "OCCL_SIZE";
  // The user's own variables count before those of a launcher.
  if (!lookup(rank) && !lookup(size))
    for (const Launcher &launcher : kLaunchers)
      if (lookup(launcher.rank) && lookup(launcher.size)) {
        rank = launcher.rank;
        size = launcher.size;
        break;
      }
  auto identity = readRankAndSize(lookup, rank, size);
  if (identity.ok())
    identity->name = address;
  return identity;
}

} // namespace

StatusOr<Identity> identityFromEnvironment(EnvironmentLookup lookup) {
  // An address means several machines; OCCL's variables count before a launcher's.
  if (const char *address = lookup("OCCL_COMM_ID"))
    return fromAddress(lookup, address);
  // One of the three variables demands the others.
  if (lookup("OCCL_RANK") || lookup("OCCL_SIZE") || lookup("OCCL_JOB")) {
    auto identity = readRankAndSize(lookup, "OCCL_RANK", "OCCL_SIZE");
    if (!identity.ok())
      return identity;
    const char *job = lookup("OCCL_JOB");
    if (!job)
      return invalid("environment variable OCCL_JOB is not set, but OCCL_RANK is");
    if (Status status = checkName(job); !status.ok())
      return invalid("environment variable OCCL_JOB: " + status.message());
    identity->name = job;
    return identity;
  }
  for (const Launcher &launcher : kLaunchers)
    if (lookup(launcher.rank) && lookup(launcher.size))
      return fromLauncher(lookup, launcher);
  return invalid("nothing says which rank this process is: start it by `occl-run -n <ranks>`, "
                 "torchrun, mpirun or srun, or set OCCL_RANK, OCCL_SIZE and OCCL_JOB");
}

StatusOr<Identity> identityFromEnvironment() { return identityFromEnvironment(ownEnvironment); }

uint64_t jobFromEnvironment(EnvironmentLookup lookup) {
  // The lowest bit is set, as 0 says that the job is not known.
  if (const char *job = lookup("OCCL_JOB"))
    return hashText(hashText(kHashOfNothing, "OCCL\n"), job) | 1;
  for (const Launcher &launcher : kLaunchers)
    if (lookup(launcher.rank) && lookup(launcher.size) && lookup(*launcher.job.begin()))
      return hashText(hashJob(lookup, launcher), launcher.title) | 1;
  return 0;
}

uint64_t jobFromEnvironment() { return jobFromEnvironment(ownEnvironment); }

std::optional<uint32_t> restartsFromEnvironment(EnvironmentLookup lookup) {
  for (const Launcher &launcher : kLaunchers)
    if (launcher.restarts && lookup(launcher.rank) && lookup(launcher.size))
      if (auto number = readNumber(lookup, launcher.restarts); number.ok())
        return *number;
  return std::nullopt;
}

std::optional<uint32_t> restartsFromEnvironment() {
  return restartsFromEnvironment(ownEnvironment);
}

} // namespace occl::bootstrap
