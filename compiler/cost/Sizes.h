// Sizes to predict for if nobody asked for one.
#pragma once

#include "plan/model/plan.h"

#include <algorithm>
#include <vector>

namespace occl::cost {

/// `bytes`, or what comes nearest to it in the range that the plan is meant for.
inline uint64_t clampToPlan(const plan::Plan &plan, uint64_t bytes) {
  return std::clamp(bytes, plan.minBytes, std::max(plan.minBytes, plan.maxBytes));
}

/// From small to large, within that range.
inline std::vector<uint64_t> usualSizes(const plan::Plan &plan) {
  std::vector<uint64_t> sizes;
  for (uint64_t bytes : {1u << 10, 64u << 10, 1u << 20, 64u << 20})
    sizes.push_back(clampToPlan(plan, bytes));
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

} // namespace occl::cost
