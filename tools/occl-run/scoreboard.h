// What the ranks of a measurement tell the one who prints it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace occl::run {

class Scoreboard {
public:
  virtual ~Scoreboard() = default;

  /// Returns when all ranks are here; false if one has failed.
  virtual bool barrier() = 0;
  /// Frees those in the barrier, now and later.
  virtual void fail() = 0;

  virtual void setSeconds(uint32_t rank, uint32_t iteration, double seconds) = 0;
  /// Of the slowest rank.
  virtual double secondsOf(uint32_t iteration) const = 0;
  virtual void addWrong(uint64_t elements) = 0;
  virtual uint64_t wrong() const = 0;
};

/// Of ranks, threads or processes, that share memory.
class SharedScoreboard final : public Scoreboard {
public:
  /// To be made before the ranks are: processes inherit the memory. Null if there is no memory.
  static std::unique_ptr<Scoreboard> create(uint32_t numRanks, uint32_t iterations);
  ~SharedScoreboard() override;
  SharedScoreboard(const SharedScoreboard &) = delete;
  SharedScoreboard &operator=(const SharedScoreboard &) = delete;

  bool barrier() override;
  void fail() override;
  void setSeconds(uint32_t rank, uint32_t iteration, double seconds) override;
  double secondsOf(uint32_t iteration) const override;
  void addWrong(uint64_t elements) override;
  uint64_t wrong() const override;

private:
  struct Shared {
    std::atomic<uint64_t> arrivals;
    std::atomic<bool> failed;
    std::atomic<uint64_t> wrong;
  };

  SharedScoreboard(void *memory, uint64_t bytes, uint32_t numRanks, uint32_t iterations);

  Shared &shared;
  uint64_t bytes;
  uint32_t numRanks, iterations;
  std::span<double> seconds; // [rank][iteration]
};

} // namespace occl::run
