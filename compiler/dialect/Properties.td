// Native properties that the dialects' ops store: plain integers, so that an op of a program of millions costs no
// attribute. The generic form shows each as an attribute.
#ifndef OCCL_COMPILER_DIALECT_PROPERTIES_TD
#define OCCL_COMPILER_DIALECT_PROPERTIES_TD

include "mlir/IR/OpBase.td"

class Int32Property<string description> : IntProperty<"int32_t", description> {
  let convertToAttribute = "::occl::dialect::toAttribute($_ctxt, $_storage)";
  let convertFromAttribute = "return ::occl::dialect::fromAttribute($_storage, $_attr, $_diag);";
}

/// -1 leaves the choice to the compiler.
def ChannelProperty : Int32Property<"channel asked for"> {
  let defaultValue = "-1";
}

/// The number of a record of the program's `hints`; -1 is none.
def HintProperty : Int32Property<"scheduling hint"> {
  let defaultValue = "-1";
}

def CountProperty : Int32Property<"number of chunks"> {
  let defaultValue = "1";
}

def FinalProperty : EnumProperty<"bool", "whether it completes the reduction of its chunks"> {
  let convertToAttribute = "::occl::dialect::toAttribute($_ctxt, $_storage)";
  let convertFromAttribute = "return ::occl::dialect::fromAttribute($_storage, $_attr, $_diag);";
  let defaultValue = "false";
}

/// Input, Output or Scratch.
def BufferProperty : EnumProperty<"::occl::plan::OperandKind", "buffer"> {
  let convertToAttribute = "::occl::dialect::toAttribute($_ctxt, static_cast<int32_t>($_storage))";
  let convertFromAttribute = "return ::occl::dialect::fromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "llvm::hash_value(static_cast<int32_t>($_storage))";
}

#endif
