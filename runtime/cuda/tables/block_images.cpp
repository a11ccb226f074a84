// The images of all thread blocks, as far apart as the largest of them needs.
#include "runtime/cuda/tables/block_images.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/tables/block_image.h"

#include <algorithm>
#include <cstring>

namespace occl::cuda {

BlockImages makeBlockImages(const interpreter::Program &program,
                            std::pmr::memory_resource *memory) {
  constexpr uint64_t kAlignment = 128;
  BlockImages images{std::pmr::vector<std::pmr::vector<char>>(memory)};
  images.blocks.reserve(program.numBlocks);
  for (uint32_t b = 0; b < program.numBlocks; ++b) {
    images.blocks.push_back(makeBlockImage(program, b, memory));
    images.stride = std::max(images.stride, alignUp(images.blocks.back().size(), kAlignment));
  }
  return images;
}

void BlockImages::writeTo(char *memory) const {
  for (const auto &image : blocks) {
    std::memcpy(memory, image.data(), image.size());
    memory += stride;
  }
}

} // namespace occl::cuda
