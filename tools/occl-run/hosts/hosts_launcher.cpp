#include "tools/occl-run/hosts/hosts_launcher.h"

#include "tools/occl-run/hosts/host.h"
#include "tools/occl-run/launch/launcher.h"
#include "tools/occl-run/launch/variables.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdio>
#include <deque>
#include <fmt/core.h>
#include <netdb.h>
#include <sys/random.h>
#include <unistd.h>

extern char **environ;

namespace occl::run {
namespace {

using Clock = std::chrono::steady_clock;

/// What is another on each machine, or of this job.
bool isOfRank(std::string_view variable) {
  for (std::string_view own : {"OCCL_RANK=", "OCCL_SIZE=", "OCCL_JOB=", "OCCL_HOSTID=",
                               "OCCL_COMM_ID=", "OCCL_SECRET=", "OCCL_RUN_RSH="})
    if (variable.starts_with(own))
      return true;
  return false;
}

/// 256 bits.
std::string newSecret() {
  // By this the ranks recognise each other on the network; made anew for each job, and never
  // written anywhere but into their environment.
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    return "";
  std::string text;
  for (unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

/// IPv4 addresses of a name, as this machine knows them.
std::vector<std::string> addressesOf(const std::string &host) {
  std::vector<std::string> addresses;
  // IPv4, as what agents report of themselves.
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  // The part behind '@' is the machine; before it is a user.
  if (getaddrinfo(host.substr(host.find('@') + 1).c_str(), nullptr, &wanted, &found) != 0)
    return addresses;
  for (const addrinfo *it = found; it; it = it->ai_next) {
    char text[INET_ADDRSTRLEN] = {};
    const auto *address = reinterpret_cast<const sockaddr_in *>(it->ai_addr);
    addresses.emplace_back(inet_ntop(AF_INET, &address->sin_addr, text, sizeof text));
  }
  freeaddrinfo(found);
  return addresses;
}

class RemoteRanks final : public Ranks {
public:
  explicit RemoteRanks(const HostsOptions &options) : options(options) {
    for (const Place &place : options.places)
      hosts.emplace_back(options, place);
  }

  bool start(const sigset_t &inherited) override;
  bool anyRunning() const override { return std::ranges::any_of(hosts, &Host::isRunning); }
  void signalAll(int signal) override;
  void collect(std::vector<Ended> &gone) override;
  void addPolled(std::vector<pollfd> &polled) override;
  std::chrono::milliseconds patience() const override;
  void finish() override;

private:
  bool isAwaited() const { return std::ranges::any_of(hosts, &Host::isAwaited); }
  void begin(std::vector<Ended> &gone);
  std::string addressOfFirst() const;
  std::vector<std::string> environmentOf(size_t host, const std::string &address) const;

  const HostsOptions &options;
  std::deque<Host> hosts;
  const Clock::time_point startDeadline = Clock::now() + options.startTimeout;
  bool hasBegun = false; // or never will
  std::string secret;
  const std::string job = newJobName();
};

bool RemoteRanks::start(const sigset_t &inherited) {
  secret = newSecret();
  if (secret.empty())
    fmt::print(stderr, "occl-run: the system gives no random bytes\n");
  hasBegun = secret.empty() ||
             !std::ranges::all_of(hosts, [&](Host &host) { return host.start(inherited); });
  return !hasBegun;
}

void RemoteRanks::signalAll(int signal) {
  hasBegun = hasBegun || signal != SIGUSR1;
  for (Host &host : hosts)
    host.signal(signal);
}

/// One by which the user may have meant it, if the machine has it; else the machine's first.
std::string RemoteRanks::addressOfFirst() const {
  // --address is the user's word for it.
  if (!options.address.empty())
    return options.address;
  // The name that the user gave, if it resolves to an address that the machine says it has. A name
  // like "localhost", or that of a gateway, does not.
  const auto own = hosts.front().addresses();
  for (const std::string &address : addressesOf(hosts.front().name()))
    if (std::ranges::find(own, address) != own.end())
      return address;
  return own.empty() ? "127.0.0.1" : own.front();
}

std::vector<std::string> RemoteRanks::environmentOf(size_t host, const std::string &address) const {
  std::vector<std::string> environment;
  // Settings of the library go along; what says which rank a process is does not.
  for (char **it = environ; *it; ++it)
    if (std::string_view(*it).starts_with("OCCL_") && !isOfRank(*it))
      environment.emplace_back(*it);
  for (std::string &variable : storeVariables(address, hosts.front().storePort()))
    environment.push_back(std::move(variable));
  // Behind those of this environment, so that -x replaces them.
  environment.insert(environment.end(), options.environment.begin(), options.environment.end());
  environment.push_back("OCCL_JOB=" + job);
  if (hosts.size() == 1)
    return environment; // they share memory
  // Several machines: where rank 0 listens, a secret, and which machine each rank is on, as
  // containers may share a host's name.
  environment.push_back(fmt::format("OCCL_COMM_ID={}:{}", address, hosts.front().port()));
  environment.push_back("OCCL_SECRET=" + secret);
  environment.push_back(fmt::format("OCCL_HOSTID={}-{}", job, host));
  return environment;
}

/// When all agents are there.
void RemoteRanks::begin(std::vector<Ended> &gone) {
  hasBegun = true;
  // The port is rank 0's, and its machine had none free.
  if (hosts.front().port() == "0") {
    gone.push_back(
        {fmt::format("host '{}' has no free port", hosts.front().name()), 1, false, true});
    return;
  }
  const std::string address = addressOfFirst();
  // All get the same address, though each may know the machine by another.
  for (size_t i = 0; i < hosts.size(); ++i)
    hosts[i].send(environmentOf(i, address));
}

void RemoteRanks::collect(std::vector<Ended> &gone) {
  // Everything that has happened at the hosts; the rest is for the time before the job begins.
  for (Host &host : hosts)
    host.collect(gone);
  if (hasBegun)
    return;
  // The ranks start together: one machine that is missing would let the others wait until their own
  // time-outs.
  if (!isAwaited())
    return std::ranges::all_of(hosts, &Host::isRunning) ? begin(gone) : void();
  if (Clock::now() < startDeadline)
    return;
  // Whatever happens later, the deadline is over.
  hasBegun = true;
  for (const Host &host : hosts)
    if (host.isAwaited())
      gone.push_back({fmt::format("host '{}' did not answer within {} ms; see --start-timeout",
                                  host.name(), options.startTimeout.count()),
                      127, false, true});
}

void RemoteRanks::addPolled(std::vector<pollfd> &polled) {
  for (const Host &host : hosts)
    host.addPolled(polled);
}

std::chrono::milliseconds RemoteRanks::patience() const {
  if (hasBegun)
    return std::chrono::milliseconds(-1);
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(startDeadline - Clock::now()),
                  std::chrono::milliseconds(0));
}

void RemoteRanks::finish() {
  for (Host &host : hosts)
    host.finish();
}

} // namespace

std::vector<std::string> defaultStartProgram() {
  return {"ssh", "-x",
          "-o",  "BatchMode=yes",
          "-o",  "ConnectTimeout=10",
          "-o",  "ServerAliveInterval=5",
          "-o",  "ServerAliveCountMax=6"};
}

int launchOnHosts(const HostsOptions &options) {
  RemoteRanks ranks(options);
  return supervise(ranks, options.grace);
}

} // namespace occl::run
