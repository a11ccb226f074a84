#include "compiler/dialect/inst/Step.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace occl::inst {
namespace {

class StepProperty : public ::testing::Test {
protected:
  StepProperty() {
    Step send;
    send.instruction = {{{PlaceKind::Input, -1, 3}}, {{PlaceKind::Transfer, 7, 9}}, 2, 1, 4, 5};
    send.location = mlir::FileLineColLoc::get(&context, "a.coll", 3, 5);
    Step reduce;
    reduce.instruction = {{{PlaceKind::Input, 2, 0}, {PlaceKind::Scratch, -1, ~0u}},
                          {{PlaceKind::Output, -1, 0}}};
    reduce.instruction.final = true;
    reduce.location = send.location;
    reduce.dependencies = {0};
    steps = {send, reduce};
  }

  mlir::InFlightDiagnostic emitError() { return mlir::emitError(mlir::UnknownLoc::get(&context)); }

  mlir::MLIRContext context;
  Steps steps;
};

TEST_F(StepProperty, ComesBackFromItsFlatForm) {
  Steps result;
  ASSERT_TRUE(unflatten(flatten(steps), result));
  EXPECT_EQ(result, steps);
}

TEST_F(StepProperty, ComesBackFromAnAttribute) {
  Steps result(5); // what was there goes
  mlir::Attribute attribute = dialect::toAttribute(&context, flatten(steps));
  ASSERT_TRUE(
      succeeded(dialect::setFromAttribute(result, attribute, [this] { return emitError(); })));
  EXPECT_EQ(result, steps);
}

TEST_F(StepProperty, EqualLocationsAreStoredOnce) {
  EXPECT_EQ(flatten(steps).locations.size(), 1u);
}

TEST_F(StepProperty, WhatDiffersIsUnequalAndHasAnotherHash) {
  const llvm::hash_code hash = dialect::hashOf(flatten(steps));
  EXPECT_EQ(dialect::hashOf(flatten(Steps(steps))), hash);
  auto expectOther = [&](auto change) {
    Steps other = steps;
    change(other);
    EXPECT_NE(other, steps);
    EXPECT_NE(dialect::hashOf(flatten(other)), hash);
  };
  expectOther([](Steps &other) { other[0].instruction.sources[0].index = 4; });
  expectOther([](Steps &other) { other[0].instruction.sources[0].kind = PlaceKind::Output; });
  expectOther([](Steps &other) { other[0].instruction.destinations[0].channel = 8; });
  expectOther([](Steps &other) { other[0].instruction.count = 3; });
  expectOther([](Steps &other) { other[0].instruction.extent = 0; });
  expectOther([](Steps &other) { other[0].instruction.threadBlock = 0; });
  expectOther([](Steps &other) { other[0].instruction.group = -1; });
  expectOther([](Steps &other) { other[1].instruction.final = false; });
  expectOther([](Steps &other) { other[1].dependencies.clear(); });
  expectOther([](Steps &other) {
    other[1].location = mlir::UnknownLoc::get(other[1].location.getContext());
  });
  expectOther([](Steps &other) { other.pop_back(); });
}

/// Whatever one number becomes, there is no step of it that would not be written as it was read.
TEST_F(StepProperty, DamagedNumbersAreRefusedOrMeanWhatTheySay) {
  const dialect::FlatForm flat = flatten(steps);
  for (size_t i = 0; i < flat.numbers.size(); ++i)
    for (int64_t number : {int64_t{-1} << 40, int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{2},
                           int64_t{70000}, int64_t{1} << 32, int64_t{1} << 62}) {
      dialect::FlatForm damaged = flat;
      damaged.numbers[i] = number;
      if (Steps result; unflatten(damaged, result)) {
        EXPECT_EQ(flatten(result).numbers, damaged.numbers) << i << " " << number;
      }
    }
}

TEST_F(StepProperty, WhatEndsEarlyIsRefused) {
  const dialect::FlatForm flat = flatten(steps);
  const size_t first = 9 + 2 * 3; // the numbers of the first step
  for (size_t size = 1; size < flat.numbers.size(); ++size) {
    dialect::FlatForm part = flat;
    part.numbers.resize(size);
    Steps result;
    EXPECT_EQ(unflatten(part, result), size == first) << size;
  }
}

TEST_F(StepProperty, ALocationThatIsNoneIsRefused) {
  dialect::FlatForm flat = flatten(steps);
  flat.locations = {mlir::StringAttr::get(&context, "a.coll:3:5")};
  Steps result;
  EXPECT_FALSE(unflatten(flat, result));
}

} // namespace
} // namespace occl::inst
