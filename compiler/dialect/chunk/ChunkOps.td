#ifndef OCCL_COMPILER_DIALECT_CHUNK_OPS_TD
#define OCCL_COMPILER_DIALECT_CHUNK_OPS_TD

include "compiler/dialect/chunk/ChunkDialect.td"
include "compiler/dialect/ProgramHeader.td"
include "compiler/dialect/Properties.td"
include "mlir/IR/BuiltinAttributes.td"

def Chunk_ChunkOpInterface : OpInterface<"ChunkOpInterface"> {
  let cppNamespace = "::occl::chunk";
  let description = "An op whose result is the content of `count` chunks of `buffer` of `rank`, from `index`.";
  let methods = [
    InterfaceMethod<"", "int32_t", "getRank", (ins), "", "return $_op.getProperties().rank;">,
    InterfaceMethod<"", "::occl::plan::OperandKind", "getBuffer", (ins), "", "return $_op.getProperties().buffer;">,
    InterfaceMethod<"", "int32_t", "getIndex", (ins), "", "return $_op.getProperties().index;">,
    InterfaceMethod<"", "int32_t", "getCount", (ins), "", "return $_op.getProperties().count;">,
  ];
}

def Chunk_ProgramOp : Op<Chunk_Dialect, "program", [IsolatedFromAbove, SingleBlock, NoTerminator,
                                                    NoRegionArguments]> {
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
    `hints` is flat, four numbers a record (compiler/dialect/Hints.h): into how many parts to cut, aggregation group,
    thread blocks of sender and receiver. Ops name their record.
  }];
  let arguments = !con(programHeader, (ins DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$hints));
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$algorithm `implements` $collective `ranks` $num_ranks attr-dict-with-keyword $body";
  let skipDefaultBuilders = 1;
  let builders = [
    // With an empty body; sizes and offsets have one entry a rank; the rest has defaults, to be changed by setters.
    OpBuilder<(ins "::llvm::StringRef":$algorithm, "::llvm::StringRef":$collective,
                   "::llvm::ArrayRef<int32_t>":$inputChunks, "::llvm::ArrayRef<int32_t>":$outputChunks,
                   "::llvm::ArrayRef<int32_t>":$scratchChunks, "::llvm::ArrayRef<int32_t>":$inPlaceOffsets)>,
  ];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Size in chunks of a rank's buffer; `rank` and `buffer` are in range.
    int32_t bufferChunks(int32_t rank, ::occl::plan::OperandKind buffer);
  }];
}

class Chunk_ChunkOp<string mnemonic> : Op<Chunk_Dialect, mnemonic, [
    HasParent<"ProgramOp">, Chunk_ChunkOpInterface]> {
  let results = (outs Chunk_ValueType:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
}

def Chunk_ReadOp : Chunk_ChunkOp<"read"> {
  let summary = "the present content of a range: `chunk.read input[rank][index] count n`";
  let arguments = (ins Int32Property<"rank">:$rank, BufferProperty:$buffer, Int32Property<"first chunk">:$index,
                       CountProperty:$count);
  let builders = [
    OpBuilder<(ins "int32_t":$rank, "::occl::plan::OperandKind":$buffer, "int32_t":$index,
                   CArg<"int32_t", "1">:$count)>,
  ];
}

def Chunk_CopyOp : Chunk_ChunkOp<"copy"> {
  let summary = "copies a value: `chunk.copy %v into output[rank][index] channel c hint h`";
  let description = "The result is the content of the destination, of as many chunks as the source.";
  let arguments = (ins Chunk_ValueType:$source, Int32Property<"rank">:$rank, BufferProperty:$buffer,
                       Int32Property<"first chunk">:$index, CountProperty:$count, ChannelProperty:$channel,
                       HintProperty:$hint);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$source, "int32_t":$rank, "::occl::plan::OperandKind":$buffer,
                   "int32_t":$index, CArg<"int32_t", "-1">:$channel, CArg<"int32_t", "-1">:$hint)>,
  ];
  let extraClassDeclaration = [{
    int32_t getChannel() { return getProperties().channel; }
    int32_t getHint() { return getProperties().hint; }
  }];
}

def Chunk_ReduceOp : Chunk_ChunkOp<"reduce"> {
  let summary = "folds values from left to right: `chunk.reduce %a, %b into output[rank][index] channel c hint h final`";
  let description = [{
    The sources have equal counts and may lie on any ranks. `final` marks a reduction that completes its chunks.
  }];
  let arguments = (ins Variadic<Chunk_ValueType>:$sources, Int32Property<"rank">:$rank, BufferProperty:$buffer,
                       Int32Property<"first chunk">:$index, CountProperty:$count, ChannelProperty:$channel,
                       HintProperty:$hint, FinalProperty:$final);
  let builders = [
    OpBuilder<(ins "::mlir::ValueRange":$sources, "int32_t":$rank, "::occl::plan::OperandKind":$buffer,
                   "int32_t":$index, CArg<"int32_t", "-1">:$channel, CArg<"int32_t", "-1">:$hint)>,
  ];
  let extraClassDeclaration = [{
    int32_t getChannel() { return getProperties().channel; }
    int32_t getHint() { return getProperties().hint; }
    bool getFinal() { return getProperties().final; }
    void setFinal(bool final) { getProperties().final = final; }
  }];
}

#endif
