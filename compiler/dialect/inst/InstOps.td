#ifndef OCCL_COMPILER_DIALECT_INST_OPS_TD
#define OCCL_COMPILER_DIALECT_INST_OPS_TD

include "compiler/dialect/inst/InstDialect.td"
include "compiler/dialect/ProgramHeader.td"
include "compiler/dialect/Properties.td"
include "mlir/IR/BuiltinAttributes.td"

def Inst_InstructionOpInterface : OpInterface<"InstructionOpInterface"> {
  let cppNamespace = "::occl::inst";
  let description = "An instruction of a rank.";
  let methods = [
    StaticInterfaceMethod<"", "::occl::plan::Opcode", "getOpcode">,
    InterfaceMethod<"", "::occl::inst::Instruction &", "getData", (ins), "",
                    "return $_op.getProperties().data;">,
  ];
  let verify = "return ::occl::inst::verifyInstruction($_op);";
}

def InstructionProperty : Property<"::occl::inst::Instruction", "operands, count, extent, thread block"> {
  let convertToAttribute = "::occl::inst::toAttribute($_ctxt, $_storage)";
  let convertFromAttribute = "return ::occl::inst::fromAttribute($_storage, $_attr, $_diag);";
  let hashProperty = "::occl::inst::hashInstruction($_storage)";
  let writeToMlirBytecode = "::occl::inst::writeInstruction($_writer, $_storage)";
  let readFromMlirBytecode = [{
    if (::mlir::failed(::occl::inst::readInstruction($_reader, $_storage)))
      return ::mlir::failure();
  }];
}

def Inst_ProgramOp : Op<Inst_Dialect, "program", [IsolatedFromAbove, SingleBlock, NoTerminator,
                                                  NoRegionArguments]> {
  let summary = "the instructions of all ranks";
  let description = [{
    The header is that of `chunk.program`, and two attributes more. `connections` is flat: source, channel, number of
    destinations, then the destinations, ascending; a counter has channel -1; empty before `inst-assign-thread-blocks`. `uniform_chunks`
    says that a value ends in a place of another extent than its own, which needs chunks of one size.
  }];
  let arguments = !con(programHeader, (ins
    DefaultValuedAttr<BoolAttr, "false">:$uniform_chunks,
    DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$connections));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$algorithm `implements` $collective `ranks` $num_ranks attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Inst_RankOp : Op<Inst_Dialect, "rank", [IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments,
                                            HasParent<"ProgramOp">]> {
  let summary = "the instructions of one rank, in a valid order";
  let arguments = (ins I32Attr:$rank);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$rank attr-dict-with-keyword $body";
}

// `inst.<mnemonic> <sources> into <destinations> count n extent e block b group g final after %token, ...`, where a place is
// `input[i]`, `output[i]`, `scratch[i]` (each may go on with `of rank`), `transfer(id)`, `transfer(id) channel c` or `connection(i)`.
class Inst_InstructionOp<string mnemonic, string opcode> : Op<Inst_Dialect, mnemonic, [
    HasParent<"RankOp">, Inst_InstructionOpInterface]> {
  let arguments = (ins Variadic<Inst_TokenType>:$dependencies, InstructionProperty:$data);
  let results = (outs Inst_TokenType:$completion);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = "static ::occl::plan::Opcode getOpcode() { return ::occl::plan::Opcode::" # opcode # "; }";
  let extraClassDefinition = [{
    ::mlir::ParseResult $cppClass::parse(::mlir::OpAsmParser &parser, ::mlir::OperationState &state) {
      return parseInstruction(parser, state, state.getOrAddProperties<Properties>().data);
    }
    void $cppClass::print(::mlir::OpAsmPrinter &printer) {
      printInstruction(printer, *this, getProperties().data);
    }
  }];
}

def Inst_CopyOp : Inst_InstructionOp<"copy", "Copy"> {
  let summary = "one local source to one local destination";
}
def Inst_ReduceOp : Inst_InstructionOp<"reduce", "Reduce"> {
  let summary = "folds local sources into a local destination";
}
def Inst_SendOp : Inst_InstructionOp<"send", "Send"> {
  let summary = "sends a local source to one or more destinations";
}
def Inst_RecvOp : Inst_InstructionOp<"recv", "Recv"> {
  let summary = "stores what arrives";
}
def Inst_RecvReduceCopyOp : Inst_InstructionOp<"recv_reduce_copy", "RecvReduceCopy"> {
  let summary = "folds sources of which some arrive, and stores the result";
}
def Inst_RecvCopySendOp : Inst_InstructionOp<"recv_copy_send", "RecvCopySend"> {
  let summary = "passes on what arrives, and may store it";
}
def Inst_RecvReduceSendOp : Inst_InstructionOp<"recv_reduce_send", "RecvReduceSend"> {
  let summary = "folds sources of which some arrive, and sends the result";
}
def Inst_RecvReduceCopySendOp : Inst_InstructionOp<"recv_reduce_copy_send", "RecvReduceCopySend"> {
  let summary = "folds sources of which some arrive, stores and sends the result";
}
// Direct access. `inst.signal into connection(i)`; `inst.wait connection(i), connection(j) count v` waits until each counter has
// had v signals.
def Inst_LoadReduceStoreOp : Inst_InstructionOp<"load_reduce_store", "LoadReduceStore"> {
  let summary = "folds sources and stores the result, in buffers of any ranks";
}
def Inst_SignalOp : Inst_InstructionOp<"signal", "Signal"> {
  let summary = "tells the destinations of a counter that all before is done";
}
def Inst_WaitOp : Inst_InstructionOp<"wait", "Wait"> {
  let summary = "waits for signals";
}

#endif
