#include "tools/occl/host_checks.h"

#include "runtime/api/occl.h"
#include "runtime/net/choose/choose_transport.h"
#include "runtime/net/transport/nccl_net/context.h"
#include "runtime/net/transport/rails/offer.h"
#include "runtime/net/transport/verbs/port.h"
#include "tools/occl-run/launch/launcher.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sched.h>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace occl::driver {

namespace {

void checkProcessors(Report &report) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  // What this process may use, which in a container is less than the machine has.
  const long there = sysconf(_SC_NPROCESSORS_ONLN);
  const long usable = sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : there;
  const std::string state = fmt::format("{} of {} processors", usable, there);
  if (usable == 1)
    report.add(Finding::Limited, "processors", state,
               "ranks take turns on it: right, and slow. See the affinity of this process");
  else
    report.add(Finding::Good, "processors", state);
}

/// Ranks meet in an object of 40 KiB there; data is in memory that has no name.
void checkSharedMemory(Report &report) {
  struct statvfs found = {};
  if (statvfs("/dev/shm", &found) != 0)
    return report.add(Finding::Broken, "/dev/shm", std::strerror(errno),
                      "mount a tmpfs there, writable for all");
  // In 64 bits: blocks times their size exceeds 32.
  const uint64_t free = uint64_t(found.f_bavail) * found.f_frsize;
  const bool isWritable = access("/dev/shm", W_OK) == 0;
  const std::string state =
      fmt::format("{} MiB free{}", free >> 20, isWritable ? "" : ", not writable");
  if (!isWritable || free < (1 << 20))
    report.add(Finding::Broken, "/dev/shm", state,
               "ranks meet in an object there: make it writable, with 1 MiB free or more");
  else
    report.add(Finding::Good, "/dev/shm", state);
}

void checkDescriptors(Report &report) {
  rlimit found = {};
  getrlimit(RLIMIT_NOFILE, &found);
  const std::string state = fmt::format("{} file descriptors", found.rlim_cur);
  // Low limits are usual in shells and too low for large jobs.
  if (found.rlim_cur < 256)
    report.add(Finding::Limited, "ulimit -n", state,
               "a communicator of n ranks takes some n of them: raise the limit");
  else
    report.add(Finding::Good, "ulimit -n", state);
}

/// A child that waits, as long as this is there.
class WaitingChild {
public:
  /// Returns once it has begun. Without it pid is -1, and `problem` says why.
  explicit WaitingChild(std::string &problem) {
    int ready[2] = {-1, -1};
    if (pipe(ready) == 0)
      pid = fork();
    if (pid < 0)
      problem = std::strerror(errno);
    // The child only waits, to be read from and then killed.
    if (pid == 0) {
      (void)!write(ready[1], "x", 1);
      for (;;)
        pause();
    }
    close(ready[1]); // so that reading ends where nobody writes
    char begun = 0;
    // Returns when the child has begun, or at once if there is none.
    (void)!read(ready[0], &begun, 1);
    close(ready[0]);
  }
  ~WaitingChild() {
    if (pid <= 0)
      return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  WaitingChild(const WaitingChild &) = delete;
  WaitingChild &operator=(const WaitingChild &) = delete;

  pid_t pid = -1;
};

/// Whether a process reads another one of the same parent, as ranks of a job do. Without processes
/// `problem` says why there are none.
bool canReadOthers(std::string &problem) {
  // A number that is the same address in both processes, as the one is a copy of the other.
  static const volatile int word = 4711;
  const WaitingChild other(problem);
  if (other.pid < 0)
    return false;
  // A sibling reads, not the parent: ranks are each other's siblings, and ptrace's rules for them
  // are stricter.
  const pid_t reader = fork();
  if (reader < 0) {
    problem = std::strerror(errno);
    return false;
  }
  if (reader == 0) {
    // In the reader, where the copy of `word` could be read by itself: only what comes through the
    // system counts.
    int got = 0;
    const iovec to = {&got, sizeof got}, from = {const_cast<int *>(&word), sizeof word};
    _exit(process_vm_readv(other.pid, &to, 1, &from, 1, 0) == sizeof got && got == word ? 0 : 1);
  }
  int status = 1;
  waitpid(reader, &status, 0);
  return status == 0;
}

void checkAccess(Report &report) {
  std::string problem;
  const bool canRead = canReadOthers(problem);
  if (!problem.empty())
    report.add(Finding::Limited, "other processes", "none can be started: " + problem,
               "see ulimit -u, and the limits of containers");
  else if (canRead)
    report.add(Finding::Good, "other processes", "their memory can be read");
  else
    report.add(Finding::Limited, "other processes", "their memory cannot be read",
               "large messages of processes are copied twice, unless they are in memory of "
               "occlMemAlloc. See kernel.yama.ptrace_scope, and the capabilities of containers");
}

/// "64 KiB of locked memory" if that is little for a network that reads and writes buffers itself;
/// else "". The system bounds it for all users but root.
std::string littleLockedMemory() {
  constexpr rlim_t kEnough = 64 << 20;
  rlimit locked = {};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  if (locked.rlim_cur >= kEnough || geteuid() == 0)
    return "";
  return fmt::format("{} KiB of locked memory", locked.rlim_cur >> 10);
}

/// Of several machines.
void checkRdma(Report &report) {
  const net::RdmaPorts &found = net::rdmaPorts();
  std::string ports;
  uint32_t numPorts = 0;
  for (const net::RdmaPort &port : found.ports)
    // A port has several addresses, which are listed one after the other.
    if (port.address.number == numPorts) { // at its first address
      ports += (ports.empty() ? "" : ", ") + port.text();
      ++numPorts;
    }
  const std::string little = littleLockedMemory();
  if (numPorts == 0)
    report.add(Finding::Good, "RDMA",
               "none, so other machines are reached over TCP: " + found.whyNone);
  else if (!little.empty())
    // Memory that a network card accesses is locked.
    report.add(Finding::Limited, "RDMA", ports + "; " + little,
               "each rank of another machine takes 1.6 MiB, and what is much used is locked, too: "
               "raise the limit (ulimit -l), best to unlimited");
  else
    report.add(Finding::Good, "RDMA", ports);
}

/// Whose addresses other machines may use over TCP.
void checkInterfaces(Report &report) {
  const auto offer = net::tcpOffer();
  if (!offer.ok())
    return report.add(Finding::Broken, "TCP", offer.status().message());
  // An interface may have several addresses.
  std::string interfaces;
  std::set<std::string> seen;
  for (uint32_t i = 0; i < offer->count; ++i) {
    const net::OfferedAddress &address = offer->addresses[i];
    if (!seen.insert(address.name()).second)
      continue;
    // The speed is known for some kinds only.
    interfaces += (interfaces.empty() ? "" : ", ") + address.name();
    if (address.speed != 0)
      interfaces += fmt::format(" ({} Mbit/s)", address.speed);
  }
  // Without interfaces one machine is enough; but if the user has named one that does not exist,
  // that is worth a line.
  if (interfaces.empty())
    report.add(offer->isNamed != 0 ? Finding::Limited : Finding::Good, "TCP",
               "no interface but loopback",
               offer->isNamed != 0 ? "OCCL_SOCKET_IFNAME or NCCL_SOCKET_IFNAME allows none that is "
                                     "up: data goes by the connection by which ranks have met"
                                   : "");
  else
    report.add(Finding::Good, "TCP", interfaces);
}

/// Of NCCL, if OCCL_NET or NCCL_NET_PLUGIN asks for one.
void checkNetworkPlugin(Report &report) {
  const auto allowed = net::transportsOfEnvironment();
  if (!allowed.ok())
    return report.add(Finding::Broken, "OCCL_NET", allowed.status().message());
  // The plugins that would be tried, in the order in which they are.
  for (const std::string &one : *allowed) {
    const char *plugin = net::ncclNetPluginOf(one);
    if (!plugin)
      continue;
    // Opened for real, as ranks would: whether it works is known only then.
    const auto opened = net::NcclNetContext::open(plugin);
    if (!opened.ok()) {
      report.add(Finding::Limited, "network plugin", opened.status().message(),
                 "ranks of other machines are reached by what follows it in OCCL_NET");
      continue;
    }
    std::string devices;
    for (const net::NcclNetDevice &device : (*opened)->devices)
      devices += fmt::format("{}{} ({} Mbit/s)", devices.empty() ? "" : ", ",
                             device.properties.name, device.properties.speed);
    const std::string state = fmt::format("{} version {}: {}", (*opened)->plugin.name,
                                          (*opened)->plugin.version, devices);
    // Plugins register buffers, which most of them lock: those of RDMA and of libfabric.
    if (const std::string little = littleLockedMemory(); !little.empty())
      report.add(Finding::Limited, "network plugin", state + "; " + little,
                 "buffers that a network reads itself are locked: raise the limit (ulimit -l), "
                 "best to unlimited");
    else
      report.add(Finding::Good, "network plugin", state);
  }
}

/// One of the two processes: 0 if the sum is right.
int sumUp(uint32_t rank) {
  occlComm_t comm = nullptr;
  // Two processes with 4 MiB each, by the library's own interface: what a first program would do.
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 20'000;
  std::vector<float> numbers(1 << 20, static_cast<float>(rank + 1));
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindAllReduce;
  call.sendBuffer = call.recvBuffer = numbers.data();
  call.count = numbers.size();
  // In-place sum of 1 and 2.
  if (occlCommInitFromEnv(&comm, &config) != occlSuccess ||
      occlCall(comm, &call, nullptr) != occlSuccess) {
    fmt::print(stderr, "occl doctor: rank {}: {}\n", rank, occlGetLastError());
    return 1;
  }
  const bool isRight = numbers.front() == 3 && numbers.back() == 3;
  occlCommDestroy(comm);
  return isRight ? 0 : 1;
}

void checkSum(Report &report) {
  const int status = run::launch({.numRanks = 2, .command = {}, .body = sumUp, .tagOutput = false});
  if (status == 0)
    report.add(Finding::Good, "an all-reduce", "4 MiB, 2 processes: right");
  else
    report.add(Finding::Broken, "an all-reduce", "2 processes do not get the sum",
               "the lines above say why");
}

} // namespace

void checkHost(Report &report) {
  checkProcessors(report);
  checkSharedMemory(report);
  checkDescriptors(report);
  checkAccess(report);
  checkRdma(report);
  checkInterfaces(report);
  checkSum(report);
  checkNetworkPlugin(report); // last: it may have threads, and the others fork()
}

} // namespace occl::driver
