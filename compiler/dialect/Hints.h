// What a program's source asks of its schedule, beside channels: the records of a chunk.program's
// `hints`. None of it changes what the program means.
#pragma once

#include "compiler/dialect/FlatForm.h"

#include "mlir/IR/Operation.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace occl::dialect {

/// One record. Operations name it by its number; -1 names none.
struct HintRecord {
  /// The operation's range is moved in that many parts, on channels and thread blocks of their own;
  /// >= 1.
  int32_t parallel = 1;
  /// Neighbouring transfers of one group between the same ranks are meant to be one message; -1:
  /// no group.
  int32_t aggregate = -1;
  /// The thread blocks asked for on the sending and on the receiving rank; -1: none.
  int32_t sendBlock = -1;
  int32_t recvBlock = -1;

  bool operator==(const HintRecord &) const = default;
};

inline constexpr size_t kHintFields = 4;

/// Record `hint` of the flat list `hints`; -1 is the record that asks for nothing.
HintRecord hintAt(llvm::ArrayRef<int32_t> hints, int32_t hint);

/// Appends `record` in the flat form.
void appendHint(llvm::SmallVectorImpl<int32_t> &hints, const HintRecord &record);

/// Checks that `hints` consists of whole records whose fields are in range; errors are emitted on
/// `op`.
mlir::LogicalResult verifyHints(mlir::Operation *op, llvm::ArrayRef<int32_t> hints);

/// Checks that an operation's hint is -1 or the number of a record of `hints`.
mlir::LogicalResult verifyHint(EmitError emitError, llvm::ArrayRef<int32_t> hints, int32_t hint);

} // namespace occl::dialect
