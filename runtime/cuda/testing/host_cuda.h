// A CUDA runtime of the host's own: what is linked with it runs on it in the place of CUDA's, with
// or without a device. So tests see what host code makes of a device that is late or refuses
// something.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>

namespace occl::cuda::testing {

/// One for the process. Device memory is the host's. What streams are given is executed by the call
/// that gives it, unless the device is held; then a copy from device memory to memory of the host
/// that is not pinned returns when it is done. Graphs, captures and kernels there are none. Thread
/// safety: any.

/// As in a new process, but for what streams and events are alive: they have executed all.
void resetHostCuda();

/// Streams execute nothing any more.
void holdDevice();
/// They execute what they were given, and what comes.
void letDeviceGo();
/// The stream executes what it was given, up to a wait for an event that has not come; of other
/// streams nothing is executed.
void letStreamGo(cudaStream_t stream);

/// After so many more of them the next call of that name, "cudaEventQuery", does nothing but return
/// the error.
void failCall(const std::string &name, cudaError_t error, uint32_t after = 0);
/// Called in each call of that name, before it does anything, without a lock.
void inCall(const std::string &name, std::function<void()> call);

/// Pieces of device memory that are allocated.
uint64_t numAllocations();
/// What cudaGetLastError() would return; keeps it.
cudaError_t lastError();

} // namespace occl::cuda::testing
