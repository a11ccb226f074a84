// Native properties of the dialects' ops.
#ifndef OCCL_COMPILER_DIALECT_PROPERTIES_TD
#define OCCL_COMPILER_DIALECT_PROPERTIES_TD

include "mlir/IR/OpBase.td"

/// Records that a program of millions of instructions has, as data: no op, no attribute for each. Of a type with the functions
/// that compiler/dialect/FlatForm.h asks for. The generic form shows a dictionary of numbers.
class FlatProperty<string type, string description> : Property<type, description> {
  let interfaceType = "std::add_lvalue_reference_t<const " # type # ">"; // accessors add const and & as text
  let convertToAttribute = "::occl::dialect::toAttribute($_ctxt, flatten($_storage))";
  let convertFromAttribute = "return ::occl::dialect::setFromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::occl::dialect::hashOf(flatten($_storage))";
  let writeToMlirBytecode = "::occl::dialect::write($_writer, flatten($_storage))";
  let readFromMlirBytecode = [{
    if (::mlir::failed(::occl::dialect::setFromBytecode($_storage, $_reader)))
      return ::mlir::failure();
  }];
}

#endif
