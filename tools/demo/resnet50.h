// The parameters of ResNet-50 (He et al., Deep Residual Learning for Image Recognition, 2015, table
// 1; batch normalisation after each convolution, 1000 classes): what data-parallel training reduces
// in every step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace occl::demo {

struct Parameter {
  std::string name; // as frameworks call it: "layer3.0.conv2.weight"
  std::vector<uint32_t> shape;

  uint64_t numElements() const;
};

/// All 161 tensors, 25,557,032 elements, from the input to the classifier.
std::vector<Parameter> resnet50Parameters();

} // namespace occl::demo
