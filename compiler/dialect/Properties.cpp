#include "compiler/dialect/Properties.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace occl::dialect {

Attribute toAttribute(MLIRContext *context, int32_t value) {
  return IntegerAttr::get(IntegerType::get(context, 32), value);
}

Attribute toAttribute(MLIRContext *context, bool value) { return BoolAttr::get(context, value); }

LogicalResult fromAttribute(int32_t &value, Attribute attribute, EmitError emitError) {
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  if (!integer || !integer.getType().isInteger(32))
    return emitError() << "expected a 32-bit integer, got " << attribute;
  value = static_cast<int32_t>(integer.getInt());
  return success();
}

LogicalResult fromAttribute(bool &value, Attribute attribute, EmitError emitError) {
  auto boolean = dyn_cast_or_null<BoolAttr>(attribute);
  if (!boolean)
    return emitError() << "expected a boolean, got " << attribute;
  value = boolean.getValue();
  return success();
}

LogicalResult fromAttribute(plan::OperandKind &value, Attribute attribute, EmitError emitError) {
  int32_t integer = 0;
  if (failed(fromAttribute(integer, attribute, emitError)))
    return failure();
  if (integer < 0 || integer > static_cast<int32_t>(plan::OperandKind::Scratch))
    return emitError() << "expected 0 (input), 1 (output) or 2 (scratch), got " << integer;
  value = static_cast<plan::OperandKind>(integer);
  return success();
}

} // namespace occl::dialect
