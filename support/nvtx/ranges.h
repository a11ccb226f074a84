// NVTX ranges of calls, in the domain "OCCL", for Nsight Systems and other tools of NVTX. Where no
// tool is attached to the process a range costs a load and a branch at each of its ends; in
// libraries that were built without NVTX's headers, which come with the CUDA toolkit, nobody is
// ever attached.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace occl::nvtx {

/// A call: its name, which outlives the range, its category, and its payload.
struct Named {
  const char *name;
  uint32_t category;
  uint64_t bytes;
};

/// For the functions below alone.
namespace detail {
inline std::atomic<bool> isAttached{false};
void push(const Named &call);
void pop();
} // namespace detail

/// The number of a category of ranges: a communicator. `what` and its number are its name in the
/// tool: "communicator 2, rank 1 of 8". The first call looks for a tool, as NVTX does: the one
/// whose library NVTX_INJECTION64_PATH names. 0 if there is none. Thread safety: any.
uint32_t addCategory(const char *what, uint32_t rank, uint32_t numRanks);

/// A range of the calling thread, as long as it lives. what(): Named, asked for only if a tool is
/// attached.
class Range {
public:
  template <class What>
  explicit Range(const What &what) : isOpen(detail::isAttached.load(std::memory_order_relaxed)) {
    if (isOpen) [[unlikely]]
      detail::push(what());
  }
  ~Range() {
    if (isOpen) [[unlikely]]
      detail::pop();
  }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

private:
  const bool isOpen;
};

} // namespace occl::nvtx
