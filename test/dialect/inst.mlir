// The custom form, the generic form and bytecode all carry everything.
// RUN: occl-opt %s | FileCheck %s
// RUN: occl-opt %s --mlir-print-op-generic | occl-opt | FileCheck %s
// RUN: occl-opt %s --emit-bytecode | occl-opt | FileCheck %s

// CHECK: inst.program "x" implements "allreduce" ranks 3
// CHECK-SAME: connections = array<i32: 0, 1, 2, 1, 2>
// CHECK-SAME: uniform_chunks = true
inst.program "x" implements "allreduce" ranks 3 attributes {
    input_chunks = array<i32: 4, 4, 4>, output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 0, 1, 0>,
    in_place_offsets = array<i32: 0, 0, 0>, part_chunks = 4 : i32, uniform_chunks = true,
    connections = array<i32: 0, 1, 2, 1, 2>} {
  // CHECK-NEXT: inst.rank 0 {
  inst.rank 0 {
    // CHECK-NEXT: %[[S:.*]] = inst.send input[0] into transfer(0) channel 2, transfer(1) count 2 extent 1 block 0
    %0 = inst.send input[0] into transfer(0) channel 2, transfer(1) count 2 extent 1 block 0
    // CHECK-NEXT: inst.send input[2] into connection(0) block 3 group 5 after %[[S]]
    %1 = inst.send input[2] into connection(0) block 3 group 5 after %0
    // CHECK-NEXT: inst.copy input[3] into output[3]{{$}}
    %2 = inst.copy input[3] into output[3]
    // CHECK-NEXT: inst.reduce input[2], input[3] into output[3] final{{$}}
    %3 = inst.reduce input[2], input[3] into output[3] final
  }
  inst.rank 1 {
    // CHECK: inst.recv_reduce_copy_send transfer(0), input[1] into output[1], transfer(2) count 2 extent 1
    %0 = inst.recv_reduce_copy_send transfer(0), input[1] into output[1], transfer(2) count 2 extent 1
    // CHECK: inst.recv connection(0) into scratch[0]
    %1 = inst.recv connection(0) into scratch[0]
    // CHECK: inst.recv_reduce_send input[0], transfer(3) into transfer(4)
    %2 = inst.recv_reduce_send input[0], transfer(3) into transfer(4)
  }
  inst.rank 2 {
    // CHECK: inst.recv_reduce_copy input[0], transfer(1), transfer(2) into output[0] count 2 extent 1
    %0 = inst.recv_reduce_copy input[0], transfer(1), transfer(2) into output[0] count 2 extent 1
    // CHECK: inst.recv_copy_send connection(0) into transfer(3)
    %1 = inst.recv_copy_send connection(0) into transfer(3)
    // CHECK: inst.recv transfer(4) into output[3]
    %2 = inst.recv transfer(4) into output[3]
  }
}
