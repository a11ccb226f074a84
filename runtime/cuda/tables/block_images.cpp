#include "runtime/cuda/tables/block_images.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/tables/block_image.h"

#include <algorithm>

namespace occl::cuda {

BlockImages makeBlockImages(const interpreter::Program &program) {
  constexpr uint64_t kAlignment = 128;
  std::vector<std::vector<char>> blocks;
  BlockImages images;
  for (uint32_t b = 0; b < program.numBlocks; ++b) {
    blocks.push_back(makeBlockImage(program, b));
    images.stride = std::max(images.stride, alignUp(blocks.back().size(), kAlignment));
  }
  images.bytes.resize(images.stride * blocks.size());
  for (uint32_t b = 0; b < program.numBlocks; ++b)
    std::ranges::copy(blocks[b], images.bytes.begin() + static_cast<ptrdiff_t>(b * images.stride));
  return images;
}

} // namespace occl::cuda
