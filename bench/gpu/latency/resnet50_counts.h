// What a step of training ResNet-50 reduces, as so many shapes.
#pragma once

#include "tools/demo/resnet50.h"

#include <cstdint>
#include <vector>

namespace occl::bench {

/// Elements of its 161 gradients, each made larger by how many there are before it: all different.
inline std::vector<uint64_t> resnet50Counts() {
  std::vector<uint64_t> counts;
  for (const demo::Parameter &parameter : demo::resnet50Parameters())
    counts.push_back(parameter.numElements() + counts.size());
  return counts;
}

} // namespace occl::bench
