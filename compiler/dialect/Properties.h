// Conversions of the native properties of Properties.td to and from attributes, which only the
// generic textual form uses.
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Diagnostics.h"
#include "plan/model/plan.h"

#include <cstdint>

namespace occl::dialect {

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

mlir::Attribute toAttribute(mlir::MLIRContext *context, int32_t value);
mlir::Attribute toAttribute(mlir::MLIRContext *context, bool value);
mlir::LogicalResult fromAttribute(int32_t &value, mlir::Attribute attribute, EmitError emitError);
mlir::LogicalResult fromAttribute(bool &value, mlir::Attribute attribute, EmitError emitError);
mlir::LogicalResult fromAttribute(plan::OperandKind &value, mlir::Attribute attribute,
                                  EmitError emitError);

} // namespace occl::dialect
