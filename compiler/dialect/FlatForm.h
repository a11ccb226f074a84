// What an op has as a property of many records, as numbers: how it is written as an attribute (the
// generic textual form), as bytecode, and hashed. A property type T has two functions, found by
// its namespace: FlatForm flatten(const T &), and bool unflatten(const FlatForm &, T &), the
// inverse, which is given a T without content and any numbers, and says whether they are a T.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace occl::dialect {

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Records as numbers, one behind the other. Where a record has a location, the number is its place
/// among `locations`.
struct FlatForm {
  std::vector<int64_t> numbers;
  llvm::SmallVector<mlir::Attribute> locations;
};

/// Gives each location its number, when it is first met.
class LocationNumbers {
public:
  explicit LocationNumbers(FlatForm &flat) : flat(flat) {}

  int64_t of(mlir::LocationAttr location) {
    auto [known, isNew] =
        numbers.try_emplace(location, static_cast<int64_t>(flat.locations.size()));
    if (isNew)
      flat.locations.push_back(location);
    return known->second;
  }

private:
  FlatForm &flat;
  llvm::DenseMap<mlir::Attribute, int64_t> numbers;
};

/// Reads numbers that may be any: what is not as it must be is read as 0, and hasFailed() from then
/// on.
class FlatReader {
public:
  explicit FlatReader(const FlatForm &flat) : rest(flat.numbers), locations(flat.locations) {}

  bool hasFailed() const { return failed; }
  bool isAtEnd() const { return failed || rest.empty(); }

  /// The next number, which is a T of at most `most`.
  template <typename T> T next(int64_t most = std::numeric_limits<T>::max()) {
    // Once failed, always failed: the caller asks at the end, and reads zeros until then.
    failed |= rest.empty() || rest.front() < int64_t{std::numeric_limits<T>::min()} ||
              rest.front() > most;
    if (failed)
      return T();
    const auto number = static_cast<T>(rest.front());
    rest = rest.drop_front();
    return number;
  }

  /// The next number, which is how many records follow, of a number each at least.
  uint32_t nextSize() { return next<uint32_t>(static_cast<int64_t>(rest.size())); }

  mlir::LocationAttr nextLocation() {
    const auto number = next<uint32_t>();
    failed |= number >= locations.size() || !mlir::isa<mlir::LocationAttr>(locations[number]);
    return failed ? mlir::LocationAttr() : mlir::cast<mlir::LocationAttr>(locations[number]);
  }

private:
  llvm::ArrayRef<int64_t> rest;
  llvm::ArrayRef<mlir::Attribute> locations;
  bool failed = false;
};

mlir::Attribute toAttribute(mlir::MLIRContext *context, const FlatForm &flat);
mlir::LogicalResult fromAttribute(FlatForm &flat, mlir::Attribute attribute, EmitError emitError);
llvm::hash_code hashOf(const FlatForm &flat);
void write(mlir::DialectBytecodeWriter &writer, const FlatForm &flat);
mlir::LogicalResult read(mlir::DialectBytecodeReader &reader, FlatForm &flat);

/// Replaces `value`; emitError() says where what is no flat form is.
template <typename T, typename Emit>
mlir::LogicalResult setFromFlatForm(T &value, const FlatForm &flat, Emit emitError) {
  value = T();
  if (!unflatten(flat, value))
    return emitError() << "has numbers that are no flat form of its property";
  return mlir::success();
}

/// The hooks of FlatProperty. Both replace `value`.
template <typename T>
mlir::LogicalResult setFromAttribute(T &value, mlir::Attribute attribute, EmitError emitError) {
  FlatForm flat;
  if (mlir::failed(fromAttribute(flat, attribute, emitError)))
    return mlir::failure();
  return setFromFlatForm(value, flat, emitError);
}

template <typename T>
mlir::LogicalResult setFromBytecode(T &value, mlir::DialectBytecodeReader &reader) {
  FlatForm flat;
  if (mlir::failed(read(reader, flat)))
    return mlir::failure();
  return setFromFlatForm(value, flat, [&] { return reader.emitError(); });
}

} // namespace occl::dialect
