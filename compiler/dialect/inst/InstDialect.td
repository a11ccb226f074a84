#ifndef OCCL_COMPILER_DIALECT_INST_DIALECT_TD
#define OCCL_COMPILER_DIALECT_INST_DIALECT_TD

include "mlir/IR/OpBase.td"

def Inst_Dialect : Dialect {
  let name = "inst";
  let cppNamespace = "::occl::inst";
  let summary = "who moves it: the instructions of each rank";
  let description = [{
    A program has one op for each rank, whose property is the list of the rank's instructions. They are no ops, because
    SSA says nothing of them: dependences between instructions of a rank follow from the ranges that they read and
    write, and messages of one connection are sent and received in the order of the lists. Each list is a valid order of
    execution. Thread blocks split it; `after` says, from `inst-synchronize` on, which instructions of other thread
    blocks an instruction waits for.
  }];
}

#endif
