// Jacobi's iteration with a halo exchange, as it is written today and as a floor, beside
// examples/partitioned/jacobi.h; all with the same code for the cells.
#pragma once

#include "bench/gpu/applications/rank.h"
#include "examples/partitioned/jacobi.h"

#include <memory>

namespace occl::bench {

/// As examples::Jacobi.
class JacobiForm {
public:
  virtual ~JacobiForm() = default;
  virtual float *grid() const = 0;
  virtual void enqueue(cudaStream_t stream) = 0;
  virtual const float *change() const = 0;
};

using JacobiMaker = std::unique_ptr<JacobiForm> (*)(Rank &, const examples::JacobiShape &);

/// examples::Jacobi.
std::unique_ptr<JacobiForm> partitionedJacobi(Rank &rank, const examples::JacobiShape &shape);
/// The same kernel, whose tiles store rows and words to the other rank's memory by themselves: what
/// a program would write by hand, with nothing but that.
std::unique_ptr<JacobiForm> jacobiByHand(Rank &rank, const examples::JacobiShape &shape);
/// A kernel an iteration, then NCCL's sends and receives in its stream.
std::unique_ptr<JacobiForm> ncclJacobi(Rank &rank, const examples::JacobiShape &shape);
/// First the rows at the edges, which NCCL exchanges while a second kernel computes the others.
std::unique_ptr<JacobiForm> overlappedJacobi(Rank &rank, const examples::JacobiShape &shape);
/// A kernel an iteration; the host waits for it, then for occlSend and occlRecv, as programs of MPI
/// do. Not to be captured.
std::unique_ptr<JacobiForm> synchronisedJacobi(Rank &rank, const examples::JacobiShape &shape);
/// A kernel an iteration, and nothing is exchanged: its result is wrong.
std::unique_ptr<JacobiForm> jacobiAlone(Rank &rank, const examples::JacobiShape &shape);

} // namespace occl::bench
