#ifndef OCCL_COMPILER_DIALECT_CHUNK_OPS_TD
#define OCCL_COMPILER_DIALECT_CHUNK_OPS_TD

include "compiler/dialect/chunk/ChunkDialect.td"
include "compiler/dialect/ProgramHeader.td"
include "compiler/dialect/Properties.td"
include "mlir/IR/BuiltinAttributes.td"

def OperationsProperty : FlatProperty<"::occl::chunk::ChunkProgram", "operations, with locations">;

def Chunk_ProgramOp : Op<Chunk_Dialect, "program"> {
  let summary = "an algorithm, elaborated for fixed parameters";
  let description = [{
    ```mlir
    chunk.program "exchange" implements "alltoall" ranks 2 attributes {
        input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
        scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, in_place = false} {
      %0 = chunk.read input[0][1]
      %1 = chunk.copy %0 into output[1][0]
      ...
    }
    ```
    The operations are data of the op, one a line. Each has a value: the content of `count` chunks of a rank's buffer.

    | operation | what it does |
    |---|---|
    | `chunk.read input[rank][index] count n` | the present content of a range |
    | `chunk.copy %v into output[rank][index] count n channel c hint h` | copies a value, of as many chunks |
    | `chunk.reduce %a, %b into output[rank][index] count n channel c hint h final` | reduces values of as many chunks, of any ranks, from left to right; `final` marks a reduction that completes its chunks |

    A count of 1 is not written, nor that nothing is asked for. `hints` is flat, four numbers a record
    (compiler/dialect/Hints.h): into how many parts to cut, aggregation group, thread blocks of sender and receiver.
    Operations name their record.

    The generic form with locations (`--mlir-print-op-generic --mlir-print-debuginfo`) needs `--mlir-print-local-scope`
    to be read back: MLIR defines the alias of a location that an operation shares with an op below the list, too late.
  }];
  let arguments = !con(programHeader, (ins DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$hints,
                                           OperationsProperty:$operations));
  let assemblyFormat = [{
    $algorithm `implements` $collective `ranks` $num_ranks attr-dict-with-keyword custom<Operations>($operations)
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    // Without operations; sizes and offsets have one entry a rank; the rest has defaults, to be changed by setters.
    OpBuilder<(ins "::llvm::StringRef":$algorithm, "::llvm::StringRef":$collective,
                   "::llvm::ArrayRef<int32_t>":$inputChunks, "::llvm::ArrayRef<int32_t>":$outputChunks,
                   "::llvm::ArrayRef<int32_t>":$scratchChunks, "::llvm::ArrayRef<int32_t>":$inPlaceOffsets)>,
  ];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    const ::occl::chunk::ChunkProgram &getOperations() { return getProperties().operations; }
    /// To be changed where they are.
    ::occl::chunk::ChunkProgram &getMutableOperations() { return getProperties().operations; }
  }];
}

#endif
