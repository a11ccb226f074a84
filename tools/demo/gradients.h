// Gradients by a formula, so that their sum over the ranks is known without adding anything up.
//
// Element e of tensor t in iteration i is base(i, t, e) on every rank, times a weight of the rank;
// all values are small integers, so that floats hold them and their sums exactly, in whatever order
// they are added.
#pragma once

#include <cstdint>
#include <span>

namespace occl::demo {

class Gradients {
public:
  explicit Gradients(uint32_t numRanks) : numRanks(numRanks) {}

  /// What `rank` contributes to tensor `tensor` in `iteration`.
  void fill(std::span<float> gradient, uint32_t rank, uint32_t iteration, uint32_t tensor) const {
    const float weight = weightOf(rank);
    for (uint32_t element = 0; element < gradient.size(); ++element)
      gradient[element] = weight * base(iteration, tensor, element);
  }

  /// The number of elements that are not the sum over all ranks.
  uint64_t countWrong(std::span<const float> sum, uint32_t iteration, uint32_t tensor) const {
    float weight = 0;
    for (uint32_t rank = 0; rank < numRanks; ++rank)
      weight += weightOf(rank);
    uint64_t wrong = 0;
    for (uint32_t element = 0; element < sum.size(); ++element)
      wrong += sum[element] != weight * base(iteration, tensor, element);
    return wrong;
  }

private:
  // Squares: the weights of a wrong set of ranks hardly ever add up to those of all.
  static float weightOf(uint32_t rank) { return static_cast<float>((rank + 1) * (rank + 1)); }

  /// -7 to 8, without 0: an element that nobody wrote is never right.
  static float base(uint32_t iteration, uint32_t tensor, uint32_t element) {
    uint32_t hash = (element + tensor * 40503u + iteration * 9176u) * 2654435761u;
    int32_t value = static_cast<int32_t>(hash >> 28) - 7;
    return static_cast<float>(value == 0 ? 8 : value);
  }

  uint32_t numRanks;
};

} // namespace occl::demo
