#include "tools/demo/resnet50.h"

namespace occl::demo {
namespace {

/// A stage of bottleneck blocks: 1x1 to `width` channels, 3x3, 1x1 to 4 * width.
struct Stage {
  uint32_t numBlocks, width;
};

constexpr Stage kStages[] = {{3, 64}, {4, 128}, {6, 256}, {3, 512}};
constexpr uint32_t kExpansion = 4;
constexpr uint32_t kStemChannels = 64;
constexpr uint32_t kClasses = 1000;

class Builder {
public:
  std::vector<Parameter> parameters;

  void convolution(const std::string &name, uint32_t out, uint32_t in, uint32_t kernel) {
    parameters.push_back({name + ".weight", {out, in, kernel, kernel}});
  }
  void normalisation(const std::string &name, uint32_t channels) {
    parameters.push_back({name + ".weight", {channels}});
    parameters.push_back({name + ".bias", {channels}});
  }
  void bottleneck(const std::string &name, uint32_t in, uint32_t width, bool projects) {
    const uint32_t out = width * kExpansion;
    convolution(name + ".conv1", width, in, 1);
    // Batch normalisation has a weight and a bias of the channels that the convolution has made.
    normalisation(name + ".bn1", width);
    convolution(name + ".conv2", width, width, 3);
    normalisation(name + ".bn2", width);
    convolution(name + ".conv3", out, width, 1);
    normalisation(name + ".bn3", out);
    // The first block of a stage changes the number of channels, so that the shortcut needs a
    // convolution of its own.
    if (projects) {
      convolution(name + ".downsample.0", out, in, 1);
      normalisation(name + ".downsample.1", out);
    }
  }
};

} // namespace

uint64_t Parameter::numElements() const {
  uint64_t product = 1;
  for (uint32_t extent : shape)
    product *= extent;
  return product;
}

std::vector<Parameter> resnet50Parameters() {
  Builder builder;
  builder.convolution("conv1", kStemChannels, 3, 7);
  builder.normalisation("bn1", kStemChannels);
  // The channels that go into the next block.
  uint32_t channels = kStemChannels;
  for (uint32_t stage = 0; stage < std::size(kStages); ++stage)
    for (uint32_t block = 0; block < kStages[stage].numBlocks; ++block) {
      std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
      // Only a stage's first block projects; the others add their input as it is.
      builder.bottleneck(name, channels, kStages[stage].width, block == 0);
      channels = kStages[stage].width * kExpansion;
    }
  builder.parameters.push_back({"fc.weight", {kClasses, channels}});
  builder.parameters.push_back({"fc.bias", {kClasses}});
  return builder.parameters;
}

} // namespace occl::demo
