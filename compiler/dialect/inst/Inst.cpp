#include "compiler/dialect/inst/Inst.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace occl;
using namespace occl::inst;

#include "compiler/dialect/inst/InstDialect.cpp.inc"

void InstDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/inst/InstOps.cpp.inc"
      >();
}

void RankOp::build(OpBuilder &builder, OperationState &state, uint32_t rank) {
  state.getOrAddProperties<Properties>().rank =
      builder.getI32IntegerAttr(static_cast<int32_t>(rank));
}

#define GET_OP_CLASSES
#include "compiler/dialect/inst/InstOps.cpp.inc"
