#include "bench/collective_kind.h"

namespace occl::bench {

namespace {

float contribution(uint32_t rank, uint64_t element) {
  return static_cast<float>((element + 1) % 1024 * (rank + 1));
}

} // namespace

std::optional<StandardCollective> comparedCollective(std::string_view name) {
  const auto kind = plan::standardCollectiveOf(name);
  return kind == StandardCollective::Reduce ? std::nullopt : kind;
}

uint64_t Workload::count() const { return hasManyParts(kind) ? elements / numRanks : elements; }
uint64_t Workload::inputElements() const { return inputSize(kind, parts()); }
uint64_t Workload::outputElements() const { return outputSize(kind, parts()); }

std::vector<float> Workload::makeInput() const {
  std::vector<float> input(inputElements());
  for (uint64_t i = 0; i < input.size(); ++i)
    input[i] = contribution(rank, i);
  return input;
}

float Workload::expected(uint64_t element) const {
  const auto factor = static_cast<float>(uint64_t(numRanks) * (numRanks + 1) / 2);
  const auto goal = goalOf(kind, parts(), rank, element);
  if (!goal)
    return 0;
  return goal->ofAllRanks ? contribution(0, goal->index) * factor
                          : contribution(goal->rank, goal->index);
}

void Workload::runMpi(const float *input, float *output) const {
  const int part = static_cast<int>(count());
  switch (kind) {
  case StandardCollective::AllReduce:
    MPI_Allreduce(input, output, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    break;
  case StandardCollective::AllGather:
    MPI_Allgather(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
    break;
  case StandardCollective::ReduceScatter:
    MPI_Reduce_scatter_block(input, output, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    break;
  case StandardCollective::Broadcast:
    MPI_Bcast(output, part, MPI_FLOAT, 0, MPI_COMM_WORLD);
    break;
  case StandardCollective::AllToAll:
    MPI_Alltoall(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
    break;
  case StandardCollective::Reduce: // comparedCollective() has none of these
  case StandardCollective::Gather:
  case StandardCollective::Scatter:
    break;
  }
}

} // namespace occl::bench
