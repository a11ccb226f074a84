// How many collectives wait on the devices of this process, whatever their communicators.
//
// Streams reach a device through CUDA_DEVICE_MAX_CONNECTIONS connections. A stream with work behind
// a kernel that waits keeps its connection busy; with all of them busy nothing starts in any other
// stream, so what those kernels wait for may never be enqueued. Nobody can ask CUDA about it: but
// kernels that wait for long say so in host memory.
#pragma once

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
  /// `who` holds so many streams of the device by waits that are no kernels.
  void setHeld(int device, const void *who, uint32_t streams);
  /// Collectives, of whatever rank, that waited on the device when the last one said so.
  uint32_t count(int device);

private:
  Mutex mutex;
  std::vector<std::pair<int, const HostWords *>> ranks;
  std::map<std::pair<int, const void *>, uint32_t> held;
};

/// This process's.
WaitingOnDevices &waitingOnDevices();

/// What CUDA makes of the variable's value: null, as without one, is 8.
uint32_t connectionsFrom(const char *value);

/// "" with fewer collectives than connections; else what that means, to follow the report of one
/// that gave up.
std::string describeConnections(int device, uint32_t waiting, uint32_t connections);

/// "" unless that is a value of CUDA_LAUNCH_BLOCKING that has launches wait for their kernels; else
/// what that means, likewise.
std::string describeLaunchBlocking(const char *value);

/// "" if that value of CUDA_MODULE_LOADING has all kernels loaded at once; else what follows from
/// their being loaded when they are first launched, likewise.
std::string describeLazyLoading(const char *value);

} // namespace occl::cuda
