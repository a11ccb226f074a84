#include "compiler/dialect/chunk/ChunkProgram.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace occl::chunk {
namespace {

using plan::OperandKind;

class ChunkProgramProperty : public ::testing::Test {
protected:
  ChunkProgramProperty() {
    ChunkOp read;
    read.rank = 1;
    read.index = 3;
    read.count = 2;
    read.location = mlir::FileLineColLoc::get(&context, "a.coll", 3, 5);
    ChunkOp copy = read;
    copy.kind = ChunkOp::Kind::Copy;
    copy.buffer = OperandKind::Scratch;
    copy.channel = 4;
    copy.hint = 0;
    ChunkOp reduce = copy;
    reduce.kind = ChunkOp::Kind::Reduce;
    reduce.buffer = OperandKind::Output;
    reduce.final = true;
    program.add(read, {});
    program.add(copy, {0});
    program.add(reduce, {1, 0});
  }

  mlir::InFlightDiagnostic emitError() { return mlir::emitError(mlir::UnknownLoc::get(&context)); }

  mlir::MLIRContext context;
  ChunkProgram program;
};

TEST_F(ChunkProgramProperty, ComesBackFromItsFlatForm) {
  ChunkProgram result;
  ASSERT_TRUE(unflatten(flatten(program), result));
  EXPECT_EQ(result, program);
}

TEST_F(ChunkProgramProperty, ComesBackFromAnAttribute) {
  ChunkProgram result = program; // what was there goes
  mlir::Attribute attribute = dialect::toAttribute(&context, flatten(program));
  ASSERT_TRUE(
      succeeded(dialect::setFromAttribute(result, attribute, [this] { return emitError(); })));
  EXPECT_EQ(result, program);
}

TEST_F(ChunkProgramProperty, EqualLocationsAreStoredOnce) {
  EXPECT_EQ(flatten(program).locations.size(), 1u);
}

TEST_F(ChunkProgramProperty, WhatDiffersIsUnequalAndHasAnotherHash) {
  const llvm::hash_code hash = dialect::hashOf(flatten(program));
  EXPECT_EQ(dialect::hashOf(flatten(ChunkProgram(program))), hash);
  auto expectOther = [&](auto change) {
    ChunkProgram other = program;
    change(other);
    EXPECT_NE(other, program);
    EXPECT_NE(dialect::hashOf(flatten(other)), hash);
  };
  expectOther([](ChunkProgram &other) { other.ops[1].kind = ChunkOp::Kind::Reduce; });
  expectOther([](ChunkProgram &other) { other.ops[1].buffer = OperandKind::Input; });
  expectOther([](ChunkProgram &other) { other.ops[2].final = false; });
  expectOther([](ChunkProgram &other) { other.ops[0].rank = 0; });
  expectOther([](ChunkProgram &other) { other.ops[0].index = 4; });
  expectOther([](ChunkProgram &other) { other.ops[0].count = 3; });
  expectOther([](ChunkProgram &other) { other.ops[1].channel = -1; });
  expectOther([](ChunkProgram &other) { other.ops[1].hint = -1; });
  expectOther([](ChunkProgram &other) { other.sources[2] = 1; });
  expectOther([](ChunkProgram &other) {
    other.ops[1].location = mlir::UnknownLoc::get(other.ops[1].location.getContext());
  });
  expectOther([](ChunkProgram &other) {
    --other.ops.back().numSources;
    other.sources.pop_back();
  });
  expectOther([](ChunkProgram &other) { other.ops.pop_back(); });
}

/// Whatever one number becomes, there is no program of it that would not be written as it was read.
TEST_F(ChunkProgramProperty, DamagedNumbersAreRefusedOrMeanWhatTheySay) {
  const dialect::FlatForm flat = flatten(program);
  for (size_t i = 0; i < flat.numbers.size(); ++i)
    for (int64_t number : {int64_t{-1} << 40, int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{2},
                           int64_t{3}, int64_t{70000}, int64_t{1} << 32, int64_t{1} << 62}) {
      dialect::FlatForm damaged = flat;
      damaged.numbers[i] = number;
      if (ChunkProgram result; unflatten(damaged, result)) {
        EXPECT_EQ(flatten(result).numbers, damaged.numbers) << i << " " << number;
      }
    }
}

TEST_F(ChunkProgramProperty, WhatEndsEarlyIsRefused) {
  const dialect::FlatForm flat = flatten(program);
  for (size_t size = 1; size < flat.numbers.size(); ++size) {
    dialect::FlatForm part = flat;
    part.numbers.resize(size);
    ChunkProgram result;
    const bool isWhole = size == 10 || size == 10 + 11; // the first operations, with their sources
    EXPECT_EQ(unflatten(part, result), isWhole) << size;
  }
}

TEST_F(ChunkProgramProperty, ALocationThatIsNoneIsRefused) {
  dialect::FlatForm flat = flatten(program);
  flat.locations = {mlir::StringAttr::get(&context, "a.coll:3:5")};
  ChunkProgram result;
  EXPECT_FALSE(unflatten(flat, result));
}

} // namespace
} // namespace occl::chunk
