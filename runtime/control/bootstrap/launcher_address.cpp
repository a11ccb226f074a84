// Makes an address where ranks can meet of variables that launchers set.
#include "runtime/control/bootstrap/launcher_address.h"

#include "runtime/base/environment_number.h"

#include <string_view>

namespace occl::bootstrap {
namespace {

constexpr uint64_t kMostPort = 65535;
/// Below those that Linux gives to connections.
constexpr uint64_t kFirstPort = 1 << 14, kPorts = 1 << 14;

/// Half the range away: jobs of one machine have neighbouring MASTER_PORTs, and then neighbouring
/// ports, of which none is a MASTER_PORT. No hash of the job, as its machines may give MASTER_ADDR
/// other names.
uint64_t portBeside(uint64_t masterPort) { return kFirstPort + (masterPort + kPorts / 2) % kPorts; }

/// "n07" of "n[07-12,20],other".
std::string firstHost(std::string_view list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const size_t end = list.find_first_of(",-]", i), close = list.find(']', i);
    if (close == std::string_view::npos)
      return "";
    host += list.substr(i + 1, end - i - 1);
    i = close;
  }
  return host;
}

std::string join(const std::string &host, uint64_t port) {
  const bool isIpv6 = host.find(':') != std::string::npos && host.front() != '[';
  return (isIpv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

} // namespace

std::string addressFromLauncher(EnvironmentLookup lookup, std::optional<uint64_t> step) {
  const char *master = lookup("MASTER_ADDR"), *port = lookup("MASTER_PORT"),
             *list = lookup("SLURM_STEP_NODELIST");
  if (const auto number = port ? numberFrom(port, 1, kMostPort) : std::nullopt;
      number && master && *master != '\0')
    return join(master, portBeside(*number));
  const std::string host = list && step ? firstHost(list) : "";
  return host.empty() ? "" : join(host, kFirstPort + *step % kPorts);
}

} // namespace occl::bootstrap
