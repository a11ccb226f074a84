// How many collectives wait on the devices of this process, whatever their communicators.
//
// Streams reach a device through CUDA_DEVICE_MAX_CONNECTIONS connections. A stream with work behind
// a kernel that waits keeps its connection busy; with all of them busy nothing starts in any other
// stream, so what those kernels wait for may never be enqueued. Nobody can ask CUDA about it: but
// kernels that wait for long say so in host memory.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/tables/host_words.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class WaitingOnDevices {
public:
  /// A rank on the device; the words stay until they are removed.
  void add(int device, const HostWords &words);
  void remove(const HostWords &words);
  /// So many of the calls of the rank whose words these are wait now, by the host's clock.
  void setWaiting(const HostWords &words, uint32_t calls);
  /// `who` holds so many streams of the device by waits that are no kernels.
  void setHeld(int device, const void *who, uint32_t streams);
  /// Collectives, of whatever rank, that waited on the device when the last one said so.
  uint32_t count(int device);
  /// What waits on the device now, as far as it has been said: of the ranks' kernels the ones that
  /// have waited for some milliseconds. That of one rank alone is setWaiting()'s last value.
  uint32_t waitingNow(int device);
  uint32_t waitingNow(const HostWords &words);

private:
  struct Rank {
    int device;
    const HostWords *words;
    uint32_t waiting = 0; // setWaiting()
  };

  Mutex mutex;
  std::vector<Rank> ranks;
  std::map<std::pair<int, const void *>, uint32_t> held;
};

/// This process's.
WaitingOnDevices &waitingOnDevices();

/// What CUDA makes of the variable's value: null, as without one, is 8.
uint32_t connectionsFrom(const char *value);

/// "" with fewer collectives than connections; else what that means, to follow the report of one
/// that gave up.
std::string describeConnections(int device, uint32_t waiting, uint32_t connections);

/// Whether something that waits may be put into a stream in which nothing waits: one connection
/// must be left, for what the others wait for. Again: the error says which limit it is. With one
/// connection all ranks keep one order, and nothing is refused.
Status checkConnections(int device, uint32_t waiting, uint32_t connections);

/// "" unless that is a value of CUDA_LAUNCH_BLOCKING that has launches wait for their kernels; else
/// what that means, likewise.
std::string describeLaunchBlocking(const char *value);

/// "" if that value of CUDA_MODULE_LOADING has all kernels loaded at once; else what follows from
/// their being loaded when they are first launched, likewise.
std::string describeLazyLoading(const char *value);

} // namespace occl::cuda
