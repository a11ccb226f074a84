#include "runtime/base/process_identity.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>

namespace occl {
namespace {

struct ProcessState {
  char letter = 0;
  uint64_t startTime = 0;
};

/// From /proc/<pid>/stat; nothing if there is no such process.
std::optional<ProcessState> readState(int32_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return std::nullopt;
  char text[1024];
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0)
    return std::nullopt;
  text[length] = 0;
  // The second field is the program's name in parentheses and may hold anything; the state is the
  // third field, the start time the twenty-second.
  const char *afterName = std::strrchr(text, ')');
  ProcessState state;
  unsigned long long start = 0;
  if (!afterName || std::sscanf(afterName + 1,
                                " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                "%*s %*s %*s %llu",
                                &state.letter, &start) != 2)
    return std::nullopt;
  state.startTime = start;
  return state;
}

} // namespace

ProcessIdentity ownProcess() {
  int32_t pid = getpid();
  auto state = readState(pid);
  return {pid, state ? state->startTime : 0};
}

bool isAlive(const ProcessIdentity &process) {
  auto state = readState(process.pid);
  if (!state || state->startTime != process.startTime)
    return false;
  return state->letter != 'Z' && state->letter != 'X'; // killed, but its parent has not looked yet
}

} // namespace occl
