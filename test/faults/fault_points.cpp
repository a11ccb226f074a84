#include "test/faults/fault_points.h"

#include "test/faults/shared_ranges.h"

#include "runtime/sync/explored.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string_view>
#include <sys/resource.h>

namespace occl::faults {

namespace {

struct Armed {
  Kind kind = Kind::None;
  uint64_t point = 0;
  Record *record = nullptr;
};

Armed armed;
std::span<const char *const> watched;
bool corruptsNext = false;

void sleepMilliseconds(long milliseconds) {
  timespec time{0, milliseconds * 1000000};
  nanosleep(&time, nullptr);
}

/// Files that are open stay.
void limitFiles(bool isRelieved) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = isRelieved ? limit.rlim_max : 0;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void inject() {
  switch (armed.kind) {
  case Kind::None:
    break;
  case Kind::Kill:
    raise(SIGKILL);
    break;
  case Kind::Stop:
    raise(SIGSTOP);
    break;
  case Kind::Delay:
    sleepMilliseconds(30);
    break;
  case Kind::Corrupt:
    corruptsNext = true;
    break;
  case Kind::Exhaust:
    limitFiles(false);
    break;
  }
}

void note(const char *file) {
  for (size_t i = 0; i < watched.size(); ++i)
    if (std::strstr(file, watched[i]))
      armed.record->files.fetch_or(1u << i, std::memory_order_relaxed);
}

void pass(const char *operation, const char *file, uint32_t line) {
  if (!armed.record)
    return;
  note(file);
  if (++armed.record->points != armed.point)
    return;
  std::snprintf(armed.record->where, sizeof armed.record->where, "%s at %s:%u", operation, file,
                line);
  armed.record->hit.store(true);
  inject();
}

} // namespace

void watch(std::span<const char *const> files) { watched = files; }

void arm(Kind kind, uint64_t point, Record *record) {
  armed = {kind, point, record};
  SharedRanges::forget();
}

void relieve() { limitFiles(true); }

void passCall(const char *name) {
  SharedRanges::forget(); // it may map or unmap
  pass(name, "a system call", 0);
}

void passAccess(const char *operation, const void *address, const explored::Where &where) {
  corruptsNext = false;
  if (!armed.record)
    return;
  std::string_view name = operation;
  bool writes = name == "store" || name == "exchange" || name.starts_with("fetch_") ||
                name == "compare_exchange";
  if (writes && SharedRanges::contains(address))
    pass(operation, where.file_name(), where.line());
}

bool corrupt(void *address, uint64_t value, size_t bytes) {
  if (!corruptsNext)
    return false;
  corruptsNext = false;
  uint64_t wrong = ~value;
  std::memcpy(address, &wrong, bytes);
  return true;
}

} // namespace occl::faults
