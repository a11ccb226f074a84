// For tests of partitioned transfers: one from rank 0 to rank 1 of a communicator of threads.
#pragma once

#include "runtime/api/occl_partitioned.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace occl::communicator::testing {

/// A request, freed with it.
class Part {
public:
  Part() = default;
  ~Part() { occlPfree(part); }
  Part(const Part &) = delete;
  Part &operator=(const Part &) = delete;

  operator occlPart_t() const { return part; }
  occlPart_t *operator&() { return &part; }
  /// Frees it now.
  occlResult_t free() {
    const occlResult_t result = occlPfree(part);
    if (result == occlSuccess)
      part = nullptr;
    return result;
  }

private:
  occlPart_t part = nullptr;
};

inline std::string lastText() { return occlGetLastError(); }
inline bool hasText(const std::string &part) { return lastText().find(part) != std::string::npos; }

/// 0 or 1; -1 if that was refused.
inline int32_t arrivedNow(occlPart_t part, int64_t q) {
  int32_t arrived = -1;
  return occlParrived(part, q, &arrived) == occlSuccess ? arrived : -1;
}

/// Asks for it until it has.
inline void awaitArrival(occlPart_t part, int64_t q) {
  while (arrivedNow(part, q) == 0)
    std::this_thread::yield();
}

inline std::vector<int32_t> numbersFrom(int32_t first, uint64_t count) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// `elements` int32 from rank 0, in `sent` partitions, to rank 1, in `received`.
struct Pair {
  Pair(int64_t sent, int64_t received, uint64_t elements, uint64_t perMessage = 0,
       occlConfig_t config = OCCL_CONFIG_INITIALIZER)
      : source(elements, -1), target(elements, -2), ranks(2, config) {
    occlPartConfig_t how = OCCL_PART_CONFIG_INITIALIZER;
    how.partitionsPerMessage = perMessage;
    EXPECT_EQ(occlPsendInit(ranks[0], source.data(), sent, elements / static_cast<uint64_t>(sent),
                            occlInt32, 1, 7, &how, &send),
              occlSuccess)
        << lastText();
    EXPECT_EQ(occlPrecvInit(ranks[1], target.data(), received,
                            elements / static_cast<uint64_t>(received), occlInt32, 0, 7, nullptr,
                            &receive),
              occlSuccess)
        << lastText();
  }
  void start() const {
    EXPECT_EQ(occlPstart(send), occlSuccess) << lastText();
    EXPECT_EQ(occlPstart(receive), occlSuccess) << lastText();
  }
  void wait() const {
    EXPECT_EQ(occlPwait(receive), occlSuccess) << lastText();
    EXPECT_EQ(occlPwait(send), occlSuccess) << lastText();
  }

  std::vector<int32_t> source, target; // they live longest
  Ranks ranks;
  Part send, receive;
};

} // namespace occl::communicator::testing
