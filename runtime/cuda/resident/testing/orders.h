// All ranks of one device submit all collectives, in equal or in conflicting orders.
#pragma once

#include "runtime/cuda/resident/testing/one_device.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace occl::cuda::resident {

/// All ranks submit everything, rank r beginning at the r-th (or all at the first), then wait, so
/// often. `between(rank)` after each submission. The first failure.
template <class Between>
Status runOrders(OneDevice &group, uint32_t iterations, bool conflicting,
                 std::chrono::milliseconds atMost, const Between &between) {
  std::vector<Status> outcomes(group.numRanks());
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < group.numRanks(); ++r)
    threads.emplace_back([&, r] {
      for (uint32_t i = 0; i < iterations && outcomes[r].ok(); ++i) {
        std::vector<uint64_t> requests;
        for (uint32_t c = 0; c < group.numCollectives(); ++c) {
          auto request = group.submit(r, ((conflicting ? r : 0) + c) % group.numCollectives());
          if (!request.ok()) {
            outcomes[r] = request.status();
            return;
          }
          requests.push_back(*request);
          between(r);
        }
        for (uint64_t request : requests)
          if (outcomes[r].ok())
            outcomes[r] = group.daemon(r).wait(request, atMost);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &outcome : outcomes)
    if (!outcome.ok())
      return outcome;
  return {};
}
inline constexpr auto kNothing = [](uint32_t) {};

/// Of all ranks together; after all have left.
void printCounts(OneDevice &group);

} // namespace occl::cuda::resident
