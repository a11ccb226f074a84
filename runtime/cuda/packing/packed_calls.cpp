// Where the parts of packed calls lie.
#include "runtime/cuda/packing/packed_calls.h"

#include "runtime/base/cache_line.h"

#include <cstddef>
#include <utility>

namespace occl::cuda {

PackedCalls::PackedCalls(std::vector<PackedBuffers> calls, uint32_t inputParts,
                         uint32_t outputParts)
    : packed(std::move(calls)), inputParts(inputParts), outputParts(outputParts) {
  places.reserve(packed.size());
  for (const PackedBuffers &call : packed) {
    places.push_back(bytes);
    bytes += alignUp(call.partBytes, kAlignment);
  }
}

std::vector<DeviceCopy> PackedCalls::copiesIn(char *input) const {
  std::vector<DeviceCopy> copies;
  copies.reserve(packed.size() * inputParts);
  for (size_t c = 0; c < packed.size(); ++c)
    for (uint32_t part = 0; part < inputParts && packed[c].partBytes != 0; ++part)
      copies.push_back({packed[c].input + part * packed[c].partBytes,
                        input + part * bytes + places[c], packed[c].partBytes});
  return copies;
}

std::vector<DeviceCopy> PackedCalls::copiesOut(const char *output) const {
  std::vector<DeviceCopy> copies;
  copies.reserve(packed.size() * outputParts);
  for (size_t c = 0; c < packed.size(); ++c)
    for (uint32_t part = 0; part < outputParts && packed[c].partBytes != 0; ++part)
      copies.push_back({output + part * bytes + places[c],
                        packed[c].output + part * packed[c].partBytes, packed[c].partBytes});
  return copies;
}

} // namespace occl::cuda
