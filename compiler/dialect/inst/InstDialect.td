#ifndef OCCL_COMPILER_DIALECT_INST_DIALECT_TD
#define OCCL_COMPILER_DIALECT_INST_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Inst_Dialect : Dialect {
  let name = "inst";
  let cppNamespace = "::occl::inst";
  let summary = "who moves it: the instructions of each rank";
  let description = [{
    A program has one isolated op for each rank with one flat block of instructions. Each rank's textual order is a
    valid order of execution: dependences between instructions of a rank follow from the ranges that they read and
    write, and messages of one connection are sent and received in textual order. Thread blocks split the order; tokens
    say, from `inst-synchronize` on, which instructions of other thread blocks an instruction waits for.
  }];
  let useDefaultTypePrinterParser = 1;
}

def Inst_TokenType : TypeDef<Inst_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "the completion of an instruction";
}

#endif
