// Sends and receives between processes: what each operation takes on the slowest rank, beside plain
// copying of as many bytes. Start it by occl-run.
//
//   ring      every rank sends to the next one and receives from the one before, in a group
//   pairwise  every rank exchanges with each other one, in a group for each
//   pingpong  rank 0 sends to rank 1, which sends back; half of the time
#include "bench/runtime/checked.h"
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

namespace {

using occl::bench::check;
using Clock = std::chrono::steady_clock;

class Bench {
public:
  Bench() {
    check(occlCommInitFromEnv(&comm, nullptr));
    check(occlCommRank(comm, &rank));
    check(occlCommSize(comm, &numRanks));
    if (rank == 0)
      std::printf(
          "| operation | ranks | bytes | OCCL us | copying us |\n|---|---:|---:|---:|---:|\n");
  }
  ~Bench() { check(occlCommDestroy(comm)); }

  void run(uint64_t bytes) {
    std::vector<char> from(bytes, 'x'), to(bytes, ' ');
    auto send = [&](uint32_t peer) {
      check(occlSend(from.data(), bytes, occlUint8, peer, comm, nullptr));
    };
    auto receive = [&](uint32_t peer) {
      check(occlRecv(to.data(), bytes, occlUint8, peer, comm, nullptr));
    };
    auto exchange = [&](uint32_t next, uint32_t before) {
      check(occlGroupStart());
      send(next);
      receive(before);
      check(occlGroupEnd());
    };
    auto copy = [&] { std::memcpy(to.data(), from.data(), bytes); };
    row("ring", bytes, 1, copy,
        [&] { exchange((rank + 1) % numRanks, (rank + numRanks - 1) % numRanks); });
    row(
        "pairwise", bytes, 1,
        [&] {
          for (uint32_t i = 1; i < numRanks; ++i)
            copy();
        },
        [&] {
          for (uint32_t i = 1; i < numRanks; ++i)
            exchange((rank + i) % numRanks, (rank + numRanks - i) % numRanks);
        });
    if (numRanks > 1)
      row("pingpong", bytes, 2, copy, [&] {
        if (rank == 0)
          send(1), receive(1);
        if (rank == 1)
          receive(0), send(0);
      });
    if (std::ranges::count(to, 'x') != static_cast<int64_t>(bytes) && rank < 2)
      std::fprintf(stderr, "rank %u: wrong data\n", rank), std::abort();
  }

private:
  void row(const char *name, uint64_t bytes, double parts, const std::function<void()> &copy,
           const std::function<void()> &operation) {
    const double own = median(bytes, operation) / parts, copying = median(bytes, copy);
    if (rank == 0)
      std::printf("| %s | %u | %lu | %.2f | %.2f |\n", name, numRanks, bytes, own, copying);
    std::fflush(stdout);
  }
  /// Microseconds of the slowest rank.
  double median(uint64_t bytes, const std::function<void()> &operation) {
    const uint32_t number = bytes >= 16 << 20 ? 10 : bytes >= 1 << 20 ? 50 : 400;
    std::vector<double> mine, slowest(number);
    for (uint32_t i = 0; i < number / 4 + number; ++i) {
      int32_t one = 1;
      check(occlAllReduce(&one, &one, 1, occlInt32, occlSum, comm, nullptr)); // a barrier
      const auto begin = Clock::now();
      operation();
      if (i >= number / 4)
        mine.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    check(occlAllReduce(mine.data(), slowest.data(), number, occlFloat64, occlMax, comm, nullptr));
    std::ranges::sort(slowest);
    return slowest[number / 2];
  }

  occlComm_t comm = nullptr;
  uint32_t rank = 0, numRanks = 0;
};

} // namespace

int main() {
  Bench bench;
  for (uint64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4)
    bench.run(bytes);
}
