#include "nccl/base/environment.h"

#include "nccl/abi/exports.h"
#include "nccl/base/per_process.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <unistd.h>

extern char **environ;

namespace occl::nccl {

namespace {

const std::set<std::string> &knownSettings() {
  static const auto *known = new std::set<std::string>{
      "NCCL_COMM_ID",  "NCCL_CONF_FILE",     "NCCL_DEBUG",         "NCCL_DEBUG_FILE", "NCCL_HOSTID",
      "NCCL_MAX_CTAS", "NCCL_SOCKET_FAMILY", "NCCL_SOCKET_IFNAME", "NCCL_VERSION"};
  return *known; // Debian's and NVIDIA's images set NCCL_VERSION: it says which package is there
}

/// That the runtime reads itself, which knows no files.
constexpr std::string_view kOfEnvironmentAlone[] = {
    "NCCL_IB_DISABLE",     "NCCL_IB_HCA",           "NCCL_NET",
    "NCCL_NET_PLUGIN",     "NCCL_NSOCKS_PERTHREAD", "NCCL_P2P_DISABLE",
    "NCCL_SOCKET_NTHREADS"};

void readFile(const std::string &path, std::map<std::string, std::string> &values) {
  std::ifstream file(path);
  // "NAME=value" lines, as NCCL reads them; anything else is ignored there, too.
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    const size_t begin = line.find_first_not_of(" \t"), equals = line.find('=');
    if (begin == std::string::npos || equals == std::string::npos || equals < begin)
      continue;
    auto trimmed = [](std::string text) {
      text.erase(text.find_last_not_of(" \t\r") + 1);
      text.erase(0, text.find_first_not_of(" \t"));
      return text;
    };
    // The first one counts: files are read from the user's to the system's, and the user's wins.
    values.emplace(trimmed(line.substr(begin, equals - begin)), trimmed(line.substr(equals + 1)));
  }
}

const std::map<std::string, std::string> &fileSettings() {
  // Never freed, as other settings are: threads may ask while the process ends.
  static const auto *settings = [] {
    auto *values = new std::map<std::string, std::string>;
    if (const char *path = std::getenv("NCCL_CONF_FILE"))
      readFile(path, *values);
    else if (const char *home = std::getenv("HOME"))
      readFile(std::string(home) + "/.nccl.conf", *values);
    readFile("/etc/nccl.conf", *values);
    return values;
  }();
  return *settings;
}

struct Log {
  std::mutex mutex;
  bool isKnown = false;
  LogLevel level = LogLevel::None;
  std::string path;

  void learn() {
    // As in NCCL, any spelling of a level counts, and TRACE and ABORT are more than INFO.
    std::string asked = setting("NCCL_DEBUG").value_or("");
    std::ranges::transform(asked, asked.begin(), [](unsigned char c) { return std::toupper(c); });
    level = asked == "VERSION"                                        ? LogLevel::Version
            : asked == "WARN"                                         ? LogLevel::Warn
            : asked == "INFO" || asked == "TRACE" || asked == "ABORT" ? LogLevel::Info
                                                                      : LogLevel::None;
    // NCCL's pattern for the file's name: %h is the host, %p the process. So that ranks of one
    // machine do not write into one file, each has its own.
    path.clear();
    const std::string pattern = setting("NCCL_DEBUG_FILE").value_or("");
    for (size_t i = 0; i < pattern.size(); ++i) {
      char host[256] = "";
      if (pattern[i] != '%' || i + 1 == pattern.size())
        path += pattern[i];
      else if (pattern[++i] == 'h' && gethostname(host, sizeof(host) - 1) == 0)
        path += host;
      else if (pattern[i] == 'p')
        path += std::to_string(getpid());
      else
        path += pattern[i];
    }
    isKnown = true;
  }
  void write(const std::string &text) const {
    const std::string line =
        "OCCL (libnccl), process " + std::to_string(getpid()) + ": " + text + "\n";
    // Opened for each message: a child made by fork() would share the position, and log rotation
    // the file. Messages are few.
    std::FILE *file = path.empty() ? nullptr : std::fopen(path.c_str(), "a");
    std::fputs(line.c_str(), file ? file : stderr);
    if (file)
      std::fclose(file);
  }
};

constinit PerProcess<Log> theLog;

} // namespace

std::optional<std::string> setting(const char *name) {
  if (const char *value = std::getenv(name))
    return value;
  auto found = fileSettings().find(name);
  return found == fileSettings().end() ? std::nullopt : std::optional(found->second);
}

bool isHostMode() {
  static const bool isHost = setting("OCCL_NCCL_HOST").value_or("0") == "1";
  return isHost;
}

void log(LogLevel level, const std::string &text) {
  Log &to = theLog.get();
  std::lock_guard lock(to.mutex);
  // Read with the first message and not when the library is loaded: programs set variables in
  // main().
  if (!to.isKnown)
    to.learn();
  if (level <= to.level)
    to.write(text);
}

void resetLog() {
  Log &to = theLog.get();
  std::lock_guard lock(to.mutex);
  to.isKnown = false;
}

void nameIgnoredSettings() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Ordered, so that all ranks of a job print the same line.
    std::set<std::string> ignored;
    auto look = [&](const std::string &name) {
      if (name.starts_with("NCCL_") && !knownSettings().count(name))
        ignored.insert(name);
    };
    for (char **entry = environ; *entry; ++entry)
      // Variables that make no sense in a file are looked for in the environment alone.
      if (const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
          std::ranges::count(kOfEnvironmentAlone, name) == 0)
        look(name);
    for (const auto &[name, value] : fileSettings())
      look(name);
    std::string list;
    for (const std::string &name : ignored)
      list += (list.empty() ? "" : ", ") + name;
    if (!list.empty())
      // Printed without NCCL_DEBUG as well: a setting that silently has no effect costs people
      // days.
      std::fprintf(stderr, "OCCL (libnccl): has no meaning here and is ignored: %s\n",
                   list.c_str());
    log(LogLevel::Version, "OCCL in the place of NCCL, for programs of NCCL 2.28");
  });
}

void reportUse() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char *path = std::getenv("OCCL_NCCL_REPORT");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (file < 0)
      return; // it may be long gone: the program goes on all the same
    const std::string line = std::to_string(getpid()) + "\n";
    (void)!write(file, line.data(), line.size());
    close(file);
  });
}

} // namespace occl::nccl

void ncclResetDebugInit() { occl::nccl::resetLog(); }
OCCL_NCCL_SECOND_NAME(ncclResetDebugInit);
