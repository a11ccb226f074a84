#include "compiler/dialect/inst/Inst.h"

#include "compiler/dialect/inst/InstAssembly.h"
#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace occl;
using namespace occl::inst;

#include "compiler/dialect/inst/InstDialect.cpp.inc"
#include "compiler/dialect/inst/InstInterfaces.cpp.inc"

void InstDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/inst/InstTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/inst/InstOps.cpp.inc"
      >();
}

llvm::StringRef inst::operationName(plan::Opcode opcode) {
  constexpr llvm::StringLiteral names[] = {CopyOp::getOperationName(),
                                           ReduceOp::getOperationName(),
                                           SendOp::getOperationName(),
                                           RecvOp::getOperationName(),
                                           RecvReduceCopyOp::getOperationName(),
                                           RecvCopySendOp::getOperationName(),
                                           RecvReduceSendOp::getOperationName(),
                                           RecvReduceCopySendOp::getOperationName(),
                                           LoadReduceStoreOp::getOperationName(),
                                           SignalOp::getOperationName(),
                                           WaitOp::getOperationName()};
  return names[static_cast<unsigned>(opcode)];
}

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/inst/InstTypes.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/inst/InstOps.cpp.inc"
