// What a program of any level says about the plan that it becomes.
#ifndef OCCL_COMPILER_DIALECT_PROGRAM_HEADER_TD
#define OCCL_COMPILER_DIALECT_PROGRAM_HEADER_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/CommonAttrConstraints.td"

// The sizes are in chunks and have one entry a rank. Fields mean what they mean in plan/model/plan.h.
//   parameter_names, parameter_values  of the algorithm, in order of declaration
//   requirements  of a collective that the plan's verifier does not know by name, flat: rank, output chunk, count,
//                 number of contributions, then rank and chunk of each contribution
//   max_bytes     -1: no bound
//   channel       of transfers that name none; -1 leaves it to the compiler
defvar programHeader = (ins
  StrAttr:$algorithm,
  StrAttr:$collective,
  I32Attr:$num_ranks,
  DefaultValuedAttr<I32Attr, "1">:$part_chunks,
  DefaultValuedAttr<I32Attr, "0">:$root,
  DenseI32ArrayAttr:$input_chunks,
  DenseI32ArrayAttr:$output_chunks,
  DenseI32ArrayAttr:$scratch_chunks,
  DenseI32ArrayAttr:$in_place_offsets,
  DefaultValuedAttr<BoolAttr, "true">:$out_of_place,
  DefaultValuedAttr<BoolAttr, "true">:$in_place,
  DefaultValuedAttr<StrArrayAttr, "{}">:$parameter_names,
  DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$parameter_values,
  DefaultValuedAttr<DenseI32ArrayAttr, "{}">:$requirements,
  DefaultValuedStrAttr<StrAttr, "simple">:$protocol,
  DefaultValuedAttr<I32Attr, "2">:$depth,
  DefaultValuedAttr<I64Attr, "0">:$min_bytes,
  DefaultValuedAttr<I64Attr, "-1">:$max_bytes,
  DefaultValuedStrAttr<StrAttr, "">:$source_hash,
  DefaultValuedAttr<I32Attr, "-1">:$channel
);

#endif
