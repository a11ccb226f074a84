#include "compiler/dialect/inst/InstProperty.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace occl::inst {

// The flat form: number of sources, number of destinations, count, extent, thread block, group,
// final,
// then kind, channel and index of each place.
static constexpr size_t kFixedFields = 7, kPlaceFields = 3;

static SmallVector<int32_t, 16> flatten(const Instruction &instruction) {
  SmallVector<int32_t, 16> flat = {static_cast<int32_t>(instruction.sources.size()),
                                   static_cast<int32_t>(instruction.destinations.size()),
                                   static_cast<int32_t>(instruction.count),
                                   static_cast<int32_t>(instruction.extent),
                                   instruction.threadBlock,
                                   instruction.group,
                                   instruction.final};
  for (const Places *places : {&instruction.sources, &instruction.destinations})
    for (Place place : *places)
      flat.append({static_cast<int32_t>(place.kind), static_cast<int32_t>(place.channel),
                   static_cast<int32_t>(place.index)});
  return flat;
}

/// False if `flat` is not the flat form of an instruction.
static bool unflatten(llvm::ArrayRef<int32_t> flat, Instruction &instruction) {
  if (flat.size() < kFixedFields || flat[0] < 0 || flat[1] < 0 ||
      flat.size() != kFixedFields + kPlaceFields * (size_t(flat[0]) + size_t(flat[1])))
    return false;
  instruction.count = static_cast<uint32_t>(flat[2]);
  instruction.extent = static_cast<uint32_t>(flat[3]);
  instruction.threadBlock = flat[4];
  instruction.group = flat[5];
  instruction.final = flat[6] != 0;
  instruction.sources.clear();
  instruction.destinations.clear();
  for (size_t i = kFixedFields; i < flat.size(); i += kPlaceFields) {
    if (flat[i] < 0 || flat[i] > static_cast<int32_t>(PlaceKind::Connection))
      return false;
    bool isSource = i < kFixedFields + kPlaceFields * static_cast<size_t>(flat[0]);
    (isSource ? instruction.sources : instruction.destinations)
        .push_back({static_cast<PlaceKind>(flat[i]), static_cast<int16_t>(flat[i + 1]),
                    static_cast<uint32_t>(flat[i + 2])});
  }
  return true;
}

Attribute toAttribute(MLIRContext *context, const Instruction &instruction) {
  return DenseI32ArrayAttr::get(context, flatten(instruction));
}

LogicalResult fromAttribute(Instruction &instruction, Attribute attribute,
                            dialect::EmitError emitError) {
  auto array = dyn_cast_or_null<DenseI32ArrayAttr>(attribute);
  if (!array || !unflatten(array, instruction))
    return emitError() << "expected the flat form of an instruction, got " << attribute;
  return success();
}

llvm::hash_code hashInstruction(const Instruction &instruction) {
  SmallVector<int32_t, 16> flat = flatten(instruction);
  return llvm::hash_combine_range(flat.begin(), flat.end());
}

void writeInstruction(DialectBytecodeWriter &writer, const Instruction &instruction) {
  SmallVector<int32_t, 16> flat = flatten(instruction);
  SmallVector<int64_t, 16> wide(flat.begin(), flat.end());
  writer.writeSignedVarInts(wide);
}

LogicalResult readInstruction(DialectBytecodeReader &reader, Instruction &instruction) {
  SmallVector<int64_t> wide;
  if (failed(reader.readSignedVarInts(wide)))
    return failure();
  SmallVector<int32_t, 16> flat(wide.begin(), wide.end());
  if (!unflatten(flat, instruction))
    return reader.emitError() << "a damaged instruction";
  return success();
}

} // namespace occl::inst
