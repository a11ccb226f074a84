#include "runtime/api/testing/v_collectives.h"

#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

constexpr uint64_t kUntouched = ~uint64_t{0};

/// Element i of what rank r has for rank q.
uint64_t element(uint64_t r, uint64_t q, uint64_t i) { return r << 48 | q << 32 | i; }

/// Counts of all pairs of ranks, known to all, and places in a buffer, with gaps, in no order.
struct Layout {
  std::vector<uint64_t> counts, places;
  uint64_t size = 0;

  Layout(std::vector<uint64_t> given, std::mt19937_64 &random) : counts(std::move(given)) {
    std::vector<uint32_t> order(counts.size());
    for (uint32_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    places.resize(counts.size());
    for (uint32_t part : order) {
      size += random() % 5;
      places[part] = size;
      size += counts[part];
    }
  }
};

uint64_t drawCount(std::mt19937_64 &random) {
  const uint64_t most[] = {1, 10, 3000, 40000};
  return random() % most[random() % std::size(most)];
}

class VCollective {
public:
  VCollective(occlComm_t comm, uint32_t n, uint32_t rank, uint64_t seed)
      : comm(comm), n(n), rank(rank), random(seed), counts(n, std::vector<uint64_t>(n)) {
    for (auto &row : counts)
      for (uint64_t &count : row)
        count = drawCount(random);
    root = static_cast<uint32_t>(random() % n);
  }

  std::string allToAll() {
    std::vector<uint64_t> received;
    for (uint32_t q = 0; q < n; ++q)
      received.push_back(counts[q][rank]);
    Layout from(counts[rank], random), to(received, random);
    std::vector<uint64_t> input(from.size), output(to.size, kUntouched), want = output;
    for (uint32_t q = 0; q < n; ++q) {
      for (uint64_t i = 0; i < from.counts[q]; ++i)
        input[from.places[q] + i] = element(rank, q, i);
      for (uint64_t i = 0; i < to.counts[q]; ++i)
        want[to.places[q] + i] = element(q, rank, i);
    }
    return verdict("all-to-all",
                   occlAllToAllv(input.data(), from.counts.data(), from.places.data(),
                                 output.data(), to.counts.data(), to.places.data(), occlInt64, comm,
                                 nullptr),
                   output, want);
  }

  std::string allGather(bool inPlace) {
    Layout to(counts[0], random);
    std::vector<uint64_t> input, output(to.size, kUntouched), want = output;
    for (uint64_t i = 0; i < counts[0][rank]; ++i)
      input.push_back(element(rank, 0, i));
    for (uint32_t q = 0; q < n; ++q)
      for (uint64_t i = 0; i < counts[0][q]; ++i)
        want[to.places[q] + i] = element(q, 0, i);
    const uint64_t *from = input.data();
    if (inPlace) {
      std::copy(input.begin(), input.end(), output.begin() + to.places[rank]);
      from = output.data() + to.places[rank];
    }
    return verdict("all-gather",
                   occlAllGatherv(from, input.size(), output.data(), to.counts.data(),
                                  to.places.data(), occlInt64, comm, nullptr),
                   output, want);
  }

  std::string gather() {
    Layout to(counts[0], random);
    std::vector<uint64_t> input, output(rank == root ? to.size : 0, kUntouched), want = output;
    for (uint64_t i = 0; i < counts[0][rank]; ++i)
      input.push_back(element(rank, root, i));
    for (uint32_t q = 0; q < n && rank == root; ++q)
      for (uint64_t i = 0; i < counts[0][q]; ++i)
        want[to.places[q] + i] = element(q, root, i);
    const bool isRoot = rank == root;
    return verdict("gather",
                   occlGatherv(input.data(), input.size(), isRoot ? output.data() : nullptr,
                               isRoot ? to.counts.data() : nullptr,
                               isRoot ? to.places.data() : nullptr, occlInt64, root, comm, nullptr),
                   output, want);
  }

  std::string scatter() {
    Layout from(counts[0], random);
    const bool isRoot = rank == root;
    std::vector<uint64_t> input(isRoot ? from.size : 0), output(counts[0][rank], kUntouched), want;
    for (uint32_t q = 0; q < n && isRoot; ++q)
      for (uint64_t i = 0; i < counts[0][q]; ++i)
        input[from.places[q] + i] = element(root, q, i);
    for (uint64_t i = 0; i < counts[0][rank]; ++i)
      want.push_back(element(root, rank, i));
    return verdict("scatter",
                   occlScatterv(isRoot ? input.data() : nullptr,
                                isRoot ? from.counts.data() : nullptr,
                                isRoot ? from.places.data() : nullptr, output.data(), output.size(),
                                occlInt64, root, comm, nullptr),
                   output, want);
  }

private:
  static std::string verdict(const std::string &what, occlResult_t result,
                             const std::vector<uint64_t> &got, const std::vector<uint64_t> &want) {
    if (result != occlSuccess)
      return what + ": " + occlGetLastError();
    return got == want ? "" : what + ": wrong";
  }

  occlComm_t comm;
  uint32_t n, rank, root;
  std::mt19937_64 random; // the same on all ranks
  std::vector<std::vector<uint64_t>> counts;
};

} // namespace

std::string runVCollectives(occlComm_t comm, uint32_t numRanks, uint32_t rank, uint64_t seed) {
  std::string wrong;
  for (uint64_t round = 0; round < 40 / std::min(kSlowness, 8u) && wrong.empty(); ++round) {
    auto one = [&] { return VCollective(comm, numRanks, rank, seed + round); };
    for (const std::string &said : {one().allToAll(), one().allGather(false), one().allGather(true),
                                    one().gather(), one().scatter()})
      wrong += said;
  }
  return wrong;
}

} // namespace occl::communicator::testing
