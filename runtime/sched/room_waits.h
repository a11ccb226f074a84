// The calls of a rank that wait for room, for its reports.
#pragma once

#include "runtime/sync/mutex.h"

#include <string>
#include <vector>

namespace occl::daemon {

/// Calls of a rank that have waited for some time, by what they miss. Thread safety: any.
class RoomWaits {
public:
  /// `text`: what is missing, and who holds it.
  void set(const void *call, const std::string &text);
  void remove(const void *call);
  /// Of the one that waits for longest; "" if none does.
  std::string describe();

private:
  struct Wait {
    const void *call = nullptr;
    std::string text;
  };
  Mutex mutex;
  std::vector<Wait> waits;
};

} // namespace occl::daemon
