// One machine of a job: the agent there, and the program that connects to it.
#pragma once

#include "tools/occl-run/hosts/hosts_launcher.h"
#include "tools/occl-run/hosts/wire.h"
#include "tools/occl-run/launch/line_tagger.h"
#include "tools/occl-run/launch/pipe.h"
#include "tools/occl-run/launch/supervisor.h"

#include <csignal>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace occl::run {

class Host {
public:
  Host(const HostsOptions &options, const Place &place);
  ~Host();
  Host(const Host &) = delete;
  Host &operator=(const Host &) = delete;

  const std::string &name() const { return place.host; }
  /// The agent has not answered yet.
  bool isAwaited() const { return running && hello.empty(); }
  /// It has ended, or all of its ranks have.
  bool isRunning() const { return running && numRunning > 0; }
  /// Free ports there, "0" if there is none; and the machine's addresses.
  const std::string &port() const { return hello[1]; }
  const std::string &storePort() const { return hello[2]; }
  std::vector<std::string> addresses() const { return {hello.begin() + 3, hello.end()}; }

  /// Connects. False, after a line on standard error.
  bool start(const sigset_t &inherited);
  /// Once it has answered.
  void send(const std::vector<std::string> &environment);
  void signal(int number);
  void disconnect() const;
  void collect(std::vector<Ended> &gone);
  void addPolled(std::vector<pollfd> &polled) const;
  /// Passes on what the connecting program and the ranks have written; ends the former.
  void finish();

private:
  struct Rank {
    explicit Rank(const std::string &prefix);

    bool running = true;
    LineTagger output, errors;
  };

  void flush();
  void read(std::vector<Ended> &gone);
  void handle(const Frame &frame, std::vector<Ended> &gone);
  Ended endOfConnection(int status) const;
  std::string ranksText() const;

  const HostsOptions &options;
  const Place place;
  pid_t pid = -1; // of the connecting program
  bool running = false, isGone = false, hasMarker = false;
  Pipe fromAgent, said; // its output, and what it says of itself
  LineTagger sayer;
  int toAgent = -1;
  std::string pending; // for the agent
  FrameReader reader;
  std::vector<std::string> hello; // empty: not yet
  std::vector<Rank> ranks;
  uint32_t numRunning;
  uint32_t numKills = 0;
};

} // namespace occl::run
