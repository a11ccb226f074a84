// RUN: occl-opt %s -split-input-file -inst-schedule | FileCheck %s

// What has the longest path behind it goes first, and messages may overtake each other.
// CHECK-LABEL: "urgent"
inst.program "urgent" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 0, 0, 0>, in_place_offsets = array<i32: 0, 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 2>} {
  // CHECK: inst.rank 0
  // CHECK-NEXT: inst.send input[1]
  // CHECK-NEXT: inst.send input[0]
  // CHECK-NEXT: inst.copy
  inst.rank 0 {
    %0 = inst.copy input[0] into output[0] block 0
    %1 = inst.send input[0] into connection(0) block 0
    %2 = inst.send input[1] into connection(0) block 0
  }
  // CHECK: inst.rank 1
  // CHECK-NEXT: inst.recv_copy_send
  // CHECK-NEXT: inst.recv connection(0) into output[0]
  inst.rank 1 {
    %0 = inst.recv connection(0) into output[0] block 0
    %1 = inst.recv_copy_send connection(0) into connection(1) block 0
  }
  inst.rank 2 {
    %0 = inst.recv connection(1) into output[0] block 0
  }
}

// -----

// What memory orders stays in order.
// CHECK-LABEL: "ordered"
inst.program "ordered" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 1, 1>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1>} {
  // CHECK: inst.rank 0
  // CHECK-NEXT: inst.copy input[0] into scratch[0]
  // CHECK-NEXT: inst.copy scratch[0] into output[0]
  // CHECK-NEXT: inst.copy input[1] into scratch[0]
  // CHECK-NEXT: inst.send scratch[0]
  inst.rank 0 {
    %0 = inst.copy input[0] into scratch[0] block 0
    %1 = inst.copy scratch[0] into output[0] block 0
    %2 = inst.copy input[1] into scratch[0] block 0
    %3 = inst.send scratch[0] into connection(0) block 0
  }
  inst.rank 1 {
    %0 = inst.recv connection(0) into output[0] block 0
  }
}

// -----

// Where only the program's own order of messages completes, it is kept: rank 1 has one place for both.
// CHECK-LABEL: "kept"
inst.program "kept" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 0, 1, 0>, in_place_offsets = array<i32: 0, 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1, 2, 0, 1, 0>} {
  // CHECK: inst.rank 0
  // CHECK-NEXT: inst.recv connection(1)
  // CHECK-NEXT: inst.send output[0]
  // CHECK-NEXT: inst.send input[1]
  inst.rank 0 {
    %0 = inst.recv connection(1) into output[0] block 0
    %1 = inst.send output[0] into connection(0) block 0
    %2 = inst.send input[1] into connection(0) block 0
  }
  inst.rank 1 {
    %0 = inst.recv connection(0) into scratch[0] block 0
    %1 = inst.copy scratch[0] into output[0] block 0
    %2 = inst.recv connection(0) into scratch[0] block 0
    %3 = inst.copy scratch[0] into output[1] block 0
  }
  inst.rank 2 {
    %0 = inst.send input[0] into connection(1) block 0
  }
}

// -----

// The depth is raised where it must be: rank 1 reads the other connection first, which is sent on last.
// CHECK-LABEL: "deeper"
// CHECK-SAME: depth = 3
inst.program "deeper" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 1, 1>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, depth = 1 : i32, connections = array<i32: 0, 0, 1, 1, 0, 1, 1, 1>} {
  inst.rank 0 {
    %0 = inst.send scratch[0] into connection(0) block 0
    %1 = inst.send scratch[0] into connection(0) block 0
    %2 = inst.send scratch[0] into connection(0) block 0
    %3 = inst.copy input[1] into scratch[0] block 0
    %4 = inst.send scratch[0] into connection(1) block 0
  }
  inst.rank 1 {
    %0 = inst.recv connection(1) into output[0] block 0
    %1 = inst.recv_reduce_copy output[0], connection(0) into output[0] block 0
    %2 = inst.recv_reduce_copy output[0], connection(0) into output[0] block 0
    %3 = inst.recv_reduce_copy output[0], connection(0) into output[0] block 0
  }
}
