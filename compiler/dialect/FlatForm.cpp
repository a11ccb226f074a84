#include "compiler/dialect/FlatForm.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace occl::dialect {

static constexpr llvm::StringLiteral kNumbers = "numbers", kLocations = "locations";

Attribute toAttribute(MLIRContext *context, const FlatForm &flat) {
  return DictionaryAttr::get(
      context,
      {{StringAttr::get(context, kLocations), ArrayAttr::get(context, flat.locations)},
       {StringAttr::get(context, kNumbers), DenseI64ArrayAttr::get(context, flat.numbers)}});
}

LogicalResult fromAttribute(FlatForm &flat, Attribute attribute, EmitError emitError) {
  // The generic textual form is what people and other tools write, so everything about it may be
  // wrong.
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(attribute);
  auto numbers = dictionary ? dictionary.getAs<DenseI64ArrayAttr>(kNumbers) : nullptr;
  auto locations = dictionary ? dictionary.getAs<ArrayAttr>(kLocations) : nullptr;
  if (!numbers || !locations)
    return emitError() << "expected a dictionary of " << kNumbers << ", array<i64>, and "
                       << kLocations << ", an array, got " << attribute;
  flat.numbers = numbers.asArrayRef().vec();
  flat.locations.assign(locations.begin(), locations.end());
  return success();
}

llvm::hash_code hashOf(const FlatForm &flat) {
  return llvm::hash_combine(llvm::hash_combine_range(flat.numbers.begin(), flat.numbers.end()),
                            llvm::hash_combine_range(flat.locations.begin(), flat.locations.end()));
}

void write(DialectBytecodeWriter &writer, const FlatForm &flat) {
  writer.writeAttributes(llvm::ArrayRef(flat.locations));
  writer.writeSignedVarInts(flat.numbers);
}

/// Calls readOne() as many times as a number says that comes first. Unlike the reader's own lists
/// it reserves no memory for a number that may be any: the elements end where the bytes do.
static LogicalResult readList(DialectBytecodeReader &reader,
                              llvm::function_ref<LogicalResult()> readOne) {
  uint64_t size = 0;
  if (failed(reader.readVarInt(size)))
    return failure();
  for (uint64_t i = 0; i < size; ++i)
    if (failed(readOne()))
      return failure();
  return success();
}

LogicalResult read(DialectBytecodeReader &reader, FlatForm &flat) {
  // The attribute's two parts as bytecode: locations first, since numbers refer to them.
  auto readLocation = [&]() -> LogicalResult {
    Attribute location;
    if (failed(reader.readAttribute(location)))
      return failure();
    flat.locations.push_back(location);
    return success();
  };
  // Signed, with a length that grows with the number: most numbers take a byte.
  auto readNumber = [&]() -> LogicalResult {
    int64_t number = 0;
    if (failed(reader.readSignedVarInt(number)))
      return failure();
    flat.numbers.push_back(number);
    return success();
  };
  return success(succeeded(readList(reader, readLocation)) &&
                 succeeded(readList(reader, readNumber)));
}

} // namespace occl::dialect
