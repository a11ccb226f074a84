// Locations of lines go through text, the generic form and bytecode; a line without one has its own place in the text.
// RUN: occl-opt %s | FileCheck %s --check-prefix=WITHOUT
// RUN: occl-opt %s --mlir-print-debuginfo | FileCheck %s
// RUN: occl-opt %s --mlir-print-debuginfo | occl-opt --mlir-print-debuginfo | FileCheck %s
// RUN: occl-opt %s --mlir-print-op-generic | occl-opt --mlir-print-debuginfo | FileCheck %s
// RUN: occl-opt %s --mlir-print-op-generic --mlir-print-debuginfo --mlir-print-local-scope | occl-opt --mlir-print-debuginfo | FileCheck %s
// RUN: occl-opt %s --emit-bytecode | occl-opt --mlir-print-debuginfo | FileCheck %s
// RUN: occl-opt %s -lower-chunks --mlir-print-debuginfo | FileCheck %s --check-prefix=LOWERED

// CHECK-DAG: #[[A:loc[0-9]*]] = loc("a.coll":3:5)
// CHECK-DAG: #[[READ:loc[0-9]*]] = loc("{{.*}}locations.mlir":21:8)
// WITHOUT-NOT: loc
#a = loc("a.coll":3:5)

// CHECK: chunk.program
// LOWERED-DAG: #[[A:loc[0-9]*]] = loc("a.coll":3:5)
// LOWERED: inst.program
chunk.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  // CHECK-NEXT: %0 = chunk.read input[0][0] loc(#[[READ]])
  %0 = chunk.read input[0][0]
  // CHECK-NEXT: %1 = chunk.copy %0 into output[1][0] loc(#[[A]])
  // LOWERED: inst.send input[0] into transfer(0) loc(#[[A]])
  // LOWERED: inst.recv transfer(0) into output[0] loc(#[[A]])
  %1 = chunk.copy %0 into output[1][0] loc(#a)
} loc(#a)
