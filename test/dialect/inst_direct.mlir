// Peers' buffers, signals and waits: the custom form, the generic form and bytecode all carry everything.
// RUN: occl-opt %s | FileCheck %s
// RUN: occl-opt %s --mlir-print-op-generic | occl-opt | FileCheck %s
// RUN: occl-opt %s --emit-bytecode | occl-opt | FileCheck %s

// CHECK: inst.program "x" implements "y" ranks 2
// CHECK-SAME: connections = array<i32: 0, -1, 1, 1, 1, -1, 1, 0>
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 1>, in_place_offsets = array<i32: 0, 0>,
    connections = array<i32: 0, -1, 1, 1, 1, -1, 1, 0>} {
  inst.rank 0 {
    // CHECK: inst.load_reduce_store input[0], scratch[0] of 1 into output[0] of 1, output[0] block 0 final{{$}}
    %0 = inst.load_reduce_store input[0], scratch[0] of 1 into output[0] of 1, output[0] block 0 final
    // CHECK-NEXT: inst.signal into connection(0) block 0{{$}}
    %1 = inst.signal into connection(0) block 0
    // CHECK-NEXT: inst.signal into connection(0) block 0{{$}}
    %2 = inst.signal into connection(0) block 0
  }
  inst.rank 1 {
    // CHECK: inst.wait connection(0) count 2 block 0{{$}}
    %0 = inst.wait connection(0) count 2 block 0
  }
}
