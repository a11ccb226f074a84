#include "compiler/dialect/FlatForm.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

namespace occl::dialect {
namespace {

/// Reads from a list of numbers, of which an attribute takes one, too.
class NumberReader : public mlir::DialectBytecodeReader {
public:
  NumberReader(mlir::MLIRContext *context, std::vector<int64_t> numbers)
      : context(context), numbers(std::move(numbers)) {}

  bool isAtEnd() const { return next == numbers.size(); }

  mlir::LogicalResult readSignedVarInt(int64_t &result) override {
    if (isAtEnd())
      return mlir::failure();
    result = numbers[next++];
    return mlir::success();
  }
  mlir::LogicalResult readVarInt(uint64_t &result) override {
    int64_t number = 0;
    if (mlir::failed(readSignedVarInt(number)))
      return mlir::failure();
    result = static_cast<uint64_t>(number);
    return mlir::success();
  }
  mlir::LogicalResult readAttribute(mlir::Attribute &result) override {
    int64_t line = 0;
    if (mlir::failed(readSignedVarInt(line)))
      return mlir::failure();
    result = mlir::FileLineColLoc::get(context, "a.coll", static_cast<unsigned>(line), 1);
    return mlir::success();
  }
  mlir::MLIRContext *getContext() const override { return context; }
  mlir::InFlightDiagnostic emitError(const mlir::Twine &message) const override {
    return mlir::emitError(mlir::UnknownLoc::get(context), message);
  }

  // What no flat form consists of.
  mlir::FailureOr<const mlir::DialectVersion *> getDialectVersion(llvm::StringRef) const override {
    return mlir::failure();
  }
  uint64_t getBytecodeVersion() const override { return 0; }
  mlir::LogicalResult readOptionalAttribute(mlir::Attribute &) override { return mlir::failure(); }
  mlir::LogicalResult readType(mlir::Type &) override { return mlir::failure(); }
  mlir::FailureOr<llvm::APInt> readAPIntWithKnownWidth(unsigned) override {
    return mlir::failure();
  }
  mlir::FailureOr<llvm::APFloat>
  readAPFloatWithKnownSemantics(const llvm::fltSemantics &) override {
    return mlir::failure();
  }
  mlir::LogicalResult readString(llvm::StringRef &) override { return mlir::failure(); }
  mlir::LogicalResult readBlob(llvm::ArrayRef<char> &) override { return mlir::failure(); }
  mlir::LogicalResult readBool(bool &) override { return mlir::failure(); }

private:
  mlir::FailureOr<mlir::AsmDialectResourceHandle> readResourceHandle() override {
    return mlir::failure();
  }

  mlir::MLIRContext *context;
  std::vector<int64_t> numbers;
  size_t next = 0;
};

TEST(FlatForm, IsReadFromBytecode) {
  mlir::MLIRContext context;
  NumberReader reader(&context, {2, 7, 8, 3, -1, 0, int64_t{1} << 40});
  FlatForm flat;
  ASSERT_TRUE(mlir::succeeded(read(reader, flat)));
  EXPECT_TRUE(reader.isAtEnd());
  ASSERT_EQ(flat.locations.size(), 2u);
  EXPECT_EQ(mlir::cast<mlir::FileLineColLoc>(flat.locations[1]).getLine(), 8u);
  EXPECT_EQ(flat.numbers, (std::vector<int64_t>{-1, 0, int64_t{1} << 40}));
}

/// Memory is not reserved for what a damaged file says that there is.
TEST(FlatForm, SizesThatBytecodeDoesNotHaveAreRefused) {
  mlir::MLIRContext context;
  for (int64_t size : {int64_t{-1}, int64_t{1} << 62, int64_t{1} << 40, int64_t{5}}) {
    FlatForm flat;
    NumberReader ofLocations(&context, {size, 7, 8});
    EXPECT_TRUE(mlir::failed(read(ofLocations, flat))) << size;
    flat = {};
    NumberReader ofNumbers(&context, {1, 7, size, 2, 3});
    EXPECT_TRUE(mlir::failed(read(ofNumbers, flat))) << size;
  }
}

} // namespace
} // namespace occl::dialect
