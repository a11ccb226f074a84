// Streams of CUDA, through PyTorch's interface for any accelerator: nothing of CUDA is linked.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

struct CUstream_st;

namespace occl_torch {

/// That of the calling thread on the device.
c10::Stream currentStream(c10::Device device);
/// One of PyTorch's 32 of a priority that programs do not use as a rule: where they are all taken
/// the same one again. It never waits for the legacy default stream.
c10::Stream ownStream(c10::Device device);
/// The cudaStream_t. Throws NotImplementedError with versions of PyTorch that do not tell it.
CUstream_st *handleOf(const c10::Stream &stream);
/// Whether what is put into it becomes nodes of a graph.
bool isCaptured(const c10::Stream &stream);
/// A mark of all that the stream has so far. `stream` may be captured.
std::shared_ptr<c10::Event> markOf(const c10::Stream &stream);

} // namespace occl_torch
