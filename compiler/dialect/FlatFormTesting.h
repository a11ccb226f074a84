// What every property with a flat form keeps to (FlatForm.h), for the tests of each.
#pragma once

#include "compiler/dialect/FlatForm.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace occl::dialect::testing {

template <typename T> void expectComesBackFromItsFlatForm(const T &value) {
  T result;
  ASSERT_TRUE(unflatten(flatten(value), result));
  EXPECT_EQ(result, value);
}

/// Into `result`, whose content goes.
template <typename T>
void expectComesBackFromAnAttribute(mlir::MLIRContext &context, const T &value, T result) {
  mlir::Attribute attribute = toAttribute(&context, flatten(value));
  ASSERT_TRUE(succeeded(setFromAttribute(
      result, attribute, [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); })));
  EXPECT_EQ(result, value);
}

/// Whatever one number becomes, there is nothing of it that would not be written as it was read.
template <typename T> void expectDamagedNumbersAreRefusedOrMeanWhatTheySay(const T &value) {
  const FlatForm flat = flatten(value);
  for (size_t i = 0; i < flat.numbers.size(); ++i)
    for (int64_t number : {int64_t{-1} << 40, int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{2},
                           int64_t{3}, int64_t{70000}, int64_t{1} << 32, int64_t{1} << 62}) {
      FlatForm damaged = flat;
      damaged.numbers[i] = number;
      if (T result; unflatten(damaged, result)) {
        EXPECT_EQ(flatten(result).numbers, damaged.numbers) << i << " " << number;
      }
    }
}

/// But for as many numbers as the first records have.
template <typename T>
void expectWhatEndsEarlyIsRefused(const T &value, const std::set<size_t> &wholeRecords) {
  const FlatForm flat = flatten(value);
  for (size_t size = 1; size < flat.numbers.size(); ++size) {
    FlatForm part = flat;
    part.numbers.resize(size);
    T result;
    EXPECT_EQ(unflatten(part, result), wholeRecords.count(size) != 0) << size;
  }
}

template <typename T>
void expectALocationThatIsNoneIsRefused(mlir::MLIRContext &context, const T &value) {
  FlatForm flat = flatten(value);
  flat.locations = {mlir::StringAttr::get(&context, "a.coll:3:5")};
  T result;
  EXPECT_FALSE(unflatten(flat, result));
}

/// Compares what changes make of a value with the value.
template <typename T> class Changed {
public:
  explicit Changed(const T &value) : value(value), hash(hashOf(flatten(value))) {
    EXPECT_EQ(hashOf(flatten(T(value))), hash);
  }
  template <typename Change> void expectOther(Change change) const {
    T other = value;
    change(other);
    EXPECT_NE(other, value);
    EXPECT_NE(hashOf(flatten(other)), hash);
  }

private:
  const T &value;
  const llvm::hash_code hash;
};

} // namespace occl::dialect::testing
