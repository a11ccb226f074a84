// Processes that measure together: one for each rank, made before any of them uses CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace occl::bench {

/// What the processes share.
class Together {
public:
  /// Room for what one of them tells the others.
  static constexpr size_t kNoteBytes = 256;

  /// Returns when all processes have called it equally often; ends the process if one takes longer
  /// than a minute.
  void meet();
  /// Another process ends when it meets, as this one will not come any more.
  void fail();
  uint32_t size() const { return numRanks; }
  char *note() { return shared; }
  /// The largest of what all give, for each of them.
  double largest(double value, uint32_t rank);
  double sum(double value, uint32_t rank);

  /// Runs body(together, rank) in numRanks processes and waits for them. How many failed.
  static int run(uint32_t numRanks, const std::function<int(Together &, uint32_t)> &body);
  /// The same for a program whose one argument is the number of ranks, 2 to 8; 2, and the usage on
  /// standard error, if it is not.
  static int main(int argc, char **argv, const std::function<int(Together &, uint32_t)> &body);

private:
  static constexpr uint32_t kMaxRanks = 16;

  uint32_t numRanks = 0;
  uint32_t arrived = 0, generation = 0, failed = 0;
  double values[kMaxRanks] = {};
  char shared[kNoteBytes] = {};
};

} // namespace occl::bench
