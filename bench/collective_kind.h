// The collectives that are compared with MPI's: sizes, contents, what MPI calls them. Element i of
// rank r's contribution is a small whole number, so that every sum is exact.
#pragma once

#include "plan/collectives/collectives.h"

#include <cstdint>
#include <mpi.h>
#include <optional>
#include <string_view>
#include <vector>

namespace occl::bench {

using plan::StandardCollective;

/// Those that are compared, as plans name them: "allreduce", ...
std::optional<StandardCollective> comparedCollective(std::string_view name);

/// One collective of floats between n ranks. Its size is that of the larger buffer of a rank.
struct Workload {
  StandardCollective kind = StandardCollective::AllReduce;
  uint32_t rank = 0, numRanks = 1;
  uint64_t elements = 0; // of the larger buffer; a multiple of numRanks

  /// Elements of one part, as occlCollective_t counts them.
  uint64_t count() const;
  uint64_t inputElements() const;
  uint64_t outputElements() const;
  /// Whether a rank's input is its output: a broadcast has one buffer, as MPI has it.
  bool isInPlace() const { return kind == StandardCollective::Broadcast; }
  std::vector<float> makeInput() const;
  float expected(uint64_t element) const;
  /// Blocking.
  void runMpi(const float *input, float *output) const;

private:
  plan::Parts parts() const { return {.numRanks = numRanks, .part = count()}; }
};

} // namespace occl::bench
