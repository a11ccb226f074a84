#include "tools/demo/resnet50.h"

#include <gtest/gtest.h>
#include <set>

namespace occl::demo {
namespace {

const Parameter *find(const std::vector<Parameter> &parameters, const std::string &name) {
  for (const Parameter &parameter : parameters)
    if (parameter.name == name)
      return &parameter;
  return nullptr;
}

TEST(ResNet50, hasTheKnownNumberOfTensorsAndElements) {
  auto parameters = resnet50Parameters();
  EXPECT_EQ(parameters.size(), 161u);
  uint64_t total = 0;
  std::set<std::string> names;
  for (const Parameter &parameter : parameters) {
    total += parameter.numElements();
    names.insert(parameter.name);
  }
  EXPECT_EQ(total, 25557032u);
  EXPECT_EQ(names.size(), 161u);
}

TEST(ResNet50, hasTheKnownShapes) {
  auto parameters = resnet50Parameters();
  using Shape = std::vector<uint32_t>;
  for (const auto &[name, shape] : std::vector<std::pair<std::string, Shape>>{
           {"conv1.weight", {64, 3, 7, 7}},
           {"layer1.0.conv1.weight", {64, 64, 1, 1}},
           {"layer2.0.downsample.0.weight", {512, 256, 1, 1}},
           {"layer3.5.conv2.weight", {256, 256, 3, 3}},
           {"layer4.2.bn3.bias", {2048}},
           {"fc.weight", {1000, 2048}}}) {
    const Parameter *parameter = find(parameters, name);
    ASSERT_NE(parameter, nullptr) << name;
    EXPECT_EQ(parameter->shape, shape) << name;
  }
  EXPECT_EQ(find(parameters, "layer1.1.downsample.0.weight"), nullptr);
}

} // namespace
} // namespace occl::demo
