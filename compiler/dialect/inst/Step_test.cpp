#include "compiler/dialect/inst/Step.h"

#include "compiler/dialect/FlatFormTesting.h"

#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace occl::inst {
namespace {

using namespace dialect::testing;

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

  mlir::MLIRContext context;
  Steps steps;
};

TEST_F(StepProperty, ComesBackFromItsFlatForm) { expectComesBackFromItsFlatForm(steps); }

TEST_F(StepProperty, ComesBackFromAnAttribute) {
  expectComesBackFromAnAttribute(context, steps, Steps(5));
}

TEST_F(StepProperty, EqualLocationsAreStoredOnce) {
  EXPECT_EQ(flatten(steps).locations.size(), 1u);
}

TEST_F(StepProperty, DifferentValuesAreUnequalAndHaveAnotherHash) {
  const Changed changed(steps);
  changed.expectOther([](Steps &other) { other[0].instruction.sources[0].index = 4; });
  changed.expectOther(
      [](Steps &other) { other[0].instruction.sources[0].kind = PlaceKind::Output; });
  changed.expectOther([](Steps &other) { other[0].instruction.destinations[0].channel = 8; });
  changed.expectOther([](Steps &other) { other[0].instruction.count = 3; });
  changed.expectOther([](Steps &other) { other[0].instruction.extent = 0; });
  changed.expectOther([](Steps &other) { other[0].instruction.threadBlock = 0; });
  changed.expectOther([](Steps &other) { other[0].instruction.group = -1; });
  changed.expectOther([](Steps &other) { other[1].instruction.final = false; });
  changed.expectOther([](Steps &other) { other[1].dependencies.clear(); });
  changed.expectOther([](Steps &other) {
    other[1].location = mlir::UnknownLoc::get(other[1].location.getContext());
  });
  changed.expectOther([](Steps &other) { other.pop_back(); });
}

TEST_F(StepProperty, DamagedNumbersAreRefusedOrMeanWhatTheySay) {
  expectDamagedNumbersAreRefusedOrMeanWhatTheySay(steps);
}

TEST_F(StepProperty, NumbersThatEndEarlyAreRefused) {
  // The numbers of the first step.
  expectWhatEndsEarlyIsRefused(steps, {9 + 2 * 3});
}

TEST_F(StepProperty, ALocationThatIsNoneIsRefused) {
  expectALocationThatIsNoneIsRefused(context, steps);
}

} // namespace
} // namespace occl::inst
