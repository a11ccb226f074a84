// What the ranks of a measurement, threads or processes, tell the one who started them: memory that
// all of them share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace occl::run {

class Scoreboard {
public:
  /// To be made before the ranks are: processes inherit the memory. Null if there is no memory.
  static std::unique_ptr<Scoreboard> create(uint32_t numRanks, uint32_t iterations);
  ~Scoreboard();
  Scoreboard(const Scoreboard &) = delete;
  Scoreboard &operator=(const Scoreboard &) = delete;

  /// Returns when all ranks are here; false if one has failed.
  bool barrier();
  /// Frees those in the barrier, now and later.
  void fail();

  void setSeconds(uint32_t rank, uint32_t iteration, double seconds);
  /// Of the slowest rank.
  double secondsOf(uint32_t iteration) const;
  void addWrong(uint64_t elements);
  uint64_t wrong() const;

private:
  struct Shared {
    std::atomic<uint64_t> arrivals;
    std::atomic<bool> failed;
    std::atomic<uint64_t> wrong;
  };

  Scoreboard(void *memory, uint64_t bytes, uint32_t numRanks, uint32_t iterations);

  Shared &shared;
  uint64_t bytes;
  uint32_t numRanks, iterations;
  std::span<double> seconds; // [rank][iteration]
};

} // namespace occl::run
