// A scoreboard of ranks that share no memory: they meet in collectives of their communicator.
#pragma once

#include "runtime/api/occl.h"
#include "tools/occl-run/scoreboard.h"

#include <cstdint>
#include <vector>

namespace occl::run {

class CommScoreboard final : public Scoreboard {
public:
  /// Of one rank of `comm`, which stays.
  CommScoreboard(occlComm_t comm, uint32_t iterations) : comm(comm), seconds(iterations) {}

  bool barrier() override;
  /// The rank ends, which the others' communicator tells them.
  void fail() override {}
  void setSeconds(uint32_t, uint32_t iteration, double value) override {
    seconds[iteration] = value;
  }
  void addWrong(uint64_t elements) override { numWrong += elements; }

  /// To be called by all ranks at the end; then each has what all have said.
  occlResult_t combine();
  double secondsOf(uint32_t iteration) const override { return seconds[iteration]; }
  uint64_t wrong() const override { return numWrong; }

private:
  occlComm_t comm;
  std::vector<double> seconds; // of this rank, then of the slowest
  uint64_t numWrong = 0;
};

} // namespace occl::run
