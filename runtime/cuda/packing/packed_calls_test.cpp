// What is copied in and out, against a collective that is written here.
#include "runtime/cuda/packing/packed_calls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace occl::cuda {
namespace {

using Bytes = std::vector<char>;

void execute(const std::vector<DeviceCopy> &copies) {
  for (const DeviceCopy &copy : copies)
    std::memcpy(copy.to, copy.from, copy.bytes);
}

/// Different in each call, part and byte.
char valueOf(uint64_t call, uint64_t part, uint64_t i) {
  return static_cast<char>(1 + call * 71 + part * 29 + i * 7);
}

/// Some calls of one rank, with buffers that end where they must.
class Packing : public testing::Test {
protected:
  void make(const std::vector<uint64_t> &partBytes, uint32_t inputParts, uint32_t outputParts) {
    inputs.resize(partBytes.size());
    outputs.resize(partBytes.size());
    std::vector<PackedBuffers> calls;
    for (size_t c = 0; c < partBytes.size(); ++c) {
      inputs[c].resize(partBytes[c] * inputParts);
      outputs[c].assign(partBytes[c] * outputParts, 0);
      for (uint64_t i = 0; i < inputs[c].size(); ++i)
        inputs[c][i] = valueOf(c, i / partBytes[c], i % partBytes[c]);
      calls.push_back({inputs[c].data(), outputs[c].data(), partBytes[c]});
    }
    packed = std::make_unique<PackedCalls>(calls, inputParts, outputParts);
    input.assign(packed->inputBytes(), -1);
    output.assign(packed->outputBytes(), -2);
  }

  std::vector<Bytes> inputs, outputs;
  std::unique_ptr<PackedCalls> packed;
  Bytes input, output;
};

TEST_F(Packing, CallsOfOnePartLieBehindEachOtherFromMultiplesOf16) {
  make({4, 32, 1, 16}, 1, 1);
  EXPECT_EQ(packed->partBytes(), 16u + 32 + 16 + 16);
  execute(packed->copiesIn(input.data()));
  const uint64_t places[] = {0, 16, 48, 64};
  for (size_t c = 0; c < 4; ++c)
    EXPECT_EQ(std::memcmp(&input[places[c]], inputs[c].data(), inputs[c].size()), 0) << c;
  EXPECT_EQ(input[4], -1); // between
}

TEST_F(Packing, OutputsHaveAllPartsOfWhatTheOneCollectiveHas) {
  constexpr uint32_t kParts = 3;
  make({5, 48, 20}, 1, kParts);
  execute(packed->copiesIn(input.data()));
  // An all-gather of ranks with equal inputs, of which each part says whose it is.
  for (uint32_t part = 0; part < kParts; ++part)
    for (uint64_t i = 0; i < input.size(); ++i)
      output[part * input.size() + i] = static_cast<char>(input[i] ^ (part << 5));
  execute(packed->copiesOut(output.data()));
  for (size_t c = 0; c < outputs.size(); ++c)
    for (uint32_t part = 0; part < kParts; ++part)
      for (uint64_t i = 0; i < inputs[c].size(); ++i)
        ASSERT_EQ(outputs[c][part * inputs[c].size() + i],
                  static_cast<char>(valueOf(c, 0, i) ^ (part << 5)))
            << c << " " << part << " " << i;
}

TEST_F(Packing, InputsOfManyPartsLieByPartsNotByCalls) {
  constexpr uint32_t kParts = 4;
  make({7, 16, 33}, kParts, 1);
  execute(packed->copiesIn(input.data()));
  // The part of rank 2 of a scatter.
  std::memcpy(output.data(), &input[2 * packed->partBytes()], output.size());
  execute(packed->copiesOut(output.data()));
  for (size_t c = 0; c < outputs.size(); ++c)
    for (uint64_t i = 0; i < outputs[c].size(); ++i)
      ASSERT_EQ(outputs[c][i], valueOf(c, 2, i)) << c << " " << i;
}

TEST_F(Packing, ARankWithoutABufferAndCallsWithoutBytesHaveNothingToCopy) {
  make({8, 0, 8}, 0, 2);
  EXPECT_TRUE(packed->copiesIn(input.data()).empty());
  EXPECT_EQ(packed->inputBytes(), 0u);
  EXPECT_EQ(packed->copiesOut(output.data()).size(), 4u);
}

} // namespace
} // namespace occl::cuda
