#include "bench/collective_kind.h"

#include <cstring>

namespace occl::bench {

namespace {

float contribution(uint32_t rank, uint64_t element) {
  return static_cast<float>((element + 1) % 1024 * (rank + 1));
}

} // namespace

std::optional<CollectiveKind> collectiveKindOf(std::string_view name) {
  constexpr std::string_view names[] = {"allreduce", "allgather", "reducescatter", "broadcast",
                                        "alltoall"};
  for (unsigned i = 0; i < std::size(names); ++i)
    if (names[i] == name)
      return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

uint64_t Workload::count() const {
  bool isWhole = kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast;
  return isWhole ? elements : elements / numRanks;
}

uint64_t Workload::inputElements() const {
  return kind == CollectiveKind::AllGather ? count() : elements;
}

uint64_t Workload::outputElements() const {
  return kind == CollectiveKind::ReduceScatter ? count() : elements;
}

std::vector<float> Workload::makeInput() const {
  std::vector<float> input(inputElements());
  for (uint64_t i = 0; i < input.size(); ++i)
    input[i] = contribution(rank, i);
  return input;
}

float Workload::expected(uint64_t element) const {
  const auto factor = static_cast<float>(uint64_t(numRanks) * (numRanks + 1) / 2);
  switch (kind) {
  case CollectiveKind::AllReduce:
    return contribution(0, element) * factor;
  case CollectiveKind::AllGather:
    return contribution(static_cast<uint32_t>(element / count()), element % count());
  case CollectiveKind::ReduceScatter:
    return contribution(0, rank * count() + element) * factor;
  case CollectiveKind::Broadcast:
    return contribution(0, element);
  case CollectiveKind::AllToAll:
    return contribution(static_cast<uint32_t>(element / count()),
                        rank * count() + element % count());
  }
  return 0;
}

void Workload::runMpi(const float *input, float *output) const {
  const int part = static_cast<int>(count());
  switch (kind) {
  case CollectiveKind::AllReduce:
    MPI_Allreduce(input, output, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    break;
  case CollectiveKind::AllGather:
    MPI_Allgather(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
    break;
  case CollectiveKind::ReduceScatter:
    MPI_Reduce_scatter_block(input, output, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    break;
  case CollectiveKind::Broadcast:
    MPI_Bcast(output, part, MPI_FLOAT, 0, MPI_COMM_WORLD);
    break;
  case CollectiveKind::AllToAll:
    MPI_Alltoall(input, part, MPI_FLOAT, output, part, MPI_FLOAT, MPI_COMM_WORLD);
    break;
  }
}

} // namespace occl::bench
