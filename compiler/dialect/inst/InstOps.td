#ifndef OCCL_COMPILER_DIALECT_INST_OPS_TD
#define OCCL_COMPILER_DIALECT_INST_OPS_TD

include "compiler/dialect/inst/InstDialect.td"
include "compiler/dialect/ProgramHeader.td"
include "compiler/dialect/Properties.td"
include "mlir/IR/BuiltinAttributes.td"

def StepsProperty : FlatProperty<"::occl::inst::Steps", "instructions, with locations and dependencies">;

def Inst_ProgramOp : Op<Inst_Dialect, "program", [IsolatedFromAbove, SingleBlock, NoTerminator,
                                                  NoRegionArguments]> {
  let summary = "the instructions of all ranks";
  let description = [{
    The header is that of `chunk.program`, and three attributes more. `connections` is flat: source, channel, number of
    destinations, then the destinations, ascending; a counter has channel -1; empty before `inst-assign-thread-blocks`. `uniform_chunks`
    says that a value ends in a place of another extent than its own, which needs chunks of one size. `transfer_bound`,
    which passes leave, says below what the identifiers of transfers are; without it a pass goes over all instructions to
    find that out.
  }];
  let arguments = !con(programHeader, (ins
    DefaultValuedAttr<BoolAttr, "false">:$uniform_chunks,
    DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$connections,
    OptionalAttr<I32Attr>:$transfer_bound));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$algorithm `implements` $collective `ranks` $num_ranks attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Inst_RankOp : Op<Inst_Dialect, "rank", [HasParent<"ProgramOp">]> {
  let summary = "the instructions of one rank, in a valid order";
  let description = [{
    ```mlir
    inst.rank 0 {
      %0 = inst.send input[0] into connection(0) count 2 block 0
      %1 = inst.recv_reduce_copy connection(1), input[0] into output[0] block 1 final after %0
    }
    ```
    The instructions are data of the op, one a line: `%name = inst.<mnemonic> <sources> into <destinations> count n
    extent e block b group g final after %name, ...`, where a place is `input[i]`, `output[i]`, `scratch[i]` (each may go
    on with `of rank`), `transfer(id)`, `transfer(id) channel c` or `connection(i)`. A `wait` has no destinations, a
    `signal` no sources. What differs from count 1, extent 0, no block, no group and not final is written. With
    locations, the generic form is read back as that of `chunk.program` is.

    | mnemonic | what it does |
    |---|---|
    | `copy` | one local source to one local destination |
    | `reduce` | reduces local sources into a local destination |
    | `send` | sends a local source to one or more destinations |
    | `recv` | stores what arrives |
    | `recv_reduce_copy` | reduces sources of which some arrive, and stores the result |
    | `recv_copy_send` | passes on what arrives, and may store it |
    | `recv_reduce_send` | reduces sources of which some arrive, and sends the result |
    | `recv_reduce_copy_send` | reduces sources of which some arrive, stores and sends the result |
    | `load_reduce_store` | reduces sources and stores the result, in buffers of any ranks |
    | `signal` | tells the destinations of a counter that all before is done: `inst.signal into connection(i)` |
    | `wait` | waits until each counter has had v signals: `inst.wait connection(i), connection(j) count v` |
  }];
  let arguments = (ins I32Attr:$rank, StepsProperty:$steps);
  let assemblyFormat = "$rank attr-dict-with-keyword custom<Steps>($steps)";
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    // Without steps.
    OpBuilder<(ins "uint32_t":$rank)>,
  ];
  let extraClassDeclaration = [{
    const ::occl::inst::Steps &getSteps() { return getProperties().steps; }
    /// To be moved out, changed and moved in again: nothing is copied.
    ::occl::inst::Steps &getMutableSteps() { return getProperties().steps; }
  }];
}

#endif
