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

LogicalResult read(DialectBytecodeReader &reader, FlatForm &flat) {
  SmallVector<int64_t> numbers;
  if (failed(reader.readAttributes(flat.locations)) || failed(reader.readSignedVarInts(numbers)))
    return failure();
  flat.numbers.assign(numbers.begin(), numbers.end());
  return success();
}

} // namespace occl::dialect
