#include "compiler/dialect/chunk/ChunkProgram.h"

#include "compiler/dialect/FlatFormTesting.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace occl::chunk {
namespace {

using namespace dialect::testing;
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

  mlir::MLIRContext context;
  ChunkProgram program;
};

TEST_F(ChunkProgramProperty, ComesBackFromItsFlatForm) { expectComesBackFromItsFlatForm(program); }

TEST_F(ChunkProgramProperty, ComesBackFromAnAttribute) {
  expectComesBackFromAnAttribute(context, program, program);
}

TEST_F(ChunkProgramProperty, EqualLocationsAreStoredOnce) {
  EXPECT_EQ(flatten(program).locations.size(), 1u);
}

TEST_F(ChunkProgramProperty, DifferentValuesAreUnequalAndHaveAnotherHash) {
  const Changed changed(program);
  changed.expectOther([](ChunkProgram &other) { other.ops[1].kind = ChunkOp::Kind::Reduce; });
  changed.expectOther([](ChunkProgram &other) { other.ops[1].buffer = OperandKind::Input; });
  changed.expectOther([](ChunkProgram &other) { other.ops[2].final = false; });
  changed.expectOther([](ChunkProgram &other) { other.ops[0].rank = 0; });
  changed.expectOther([](ChunkProgram &other) { other.ops[0].index = 4; });
  changed.expectOther([](ChunkProgram &other) { other.ops[0].count = 3; });
  changed.expectOther([](ChunkProgram &other) { other.ops[1].channel = -1; });
  changed.expectOther([](ChunkProgram &other) { other.ops[1].hint = -1; });
  changed.expectOther([](ChunkProgram &other) { other.sources[2] = 1; });
  changed.expectOther([](ChunkProgram &other) {
    other.ops[1].location = mlir::UnknownLoc::get(other.ops[1].location.getContext());
  });
  changed.expectOther([](ChunkProgram &other) {
    --other.ops.back().numSources;
    other.sources.pop_back();
  });
  changed.expectOther([](ChunkProgram &other) { other.ops.pop_back(); });
}

TEST_F(ChunkProgramProperty, DamagedNumbersAreRefusedOrMeanWhatTheySay) {
  expectDamagedNumbersAreRefusedOrMeanWhatTheySay(program);
}

TEST_F(ChunkProgramProperty, NumbersThatEndEarlyAreRefused) {
  // The numbers of the first operations, with their sources.
  expectWhatEndsEarlyIsRefused(program, {10, 10 + 11});
}

TEST_F(ChunkProgramProperty, ALocationThatIsNoneIsRefused) {
  expectALocationThatIsNoneIsRefused(context, program);
}

} // namespace
} // namespace occl::chunk
