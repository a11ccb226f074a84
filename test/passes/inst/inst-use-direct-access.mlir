// RUN: occl-opt %s -split-input-file -inst-use-direct-access | FileCheck %s
// RUN: occl-opt %s -split-input-file -inst-use-direct-access=group-size=2 | FileCheck %s --check-prefix=PAIRS

// A reduction takes what it reduces where it lies, and stores where it is wanted; the others only wait until they are left alone.
// A bound of transfers above 0 does not say that there are any.
// CHECK-LABEL: "two-step"
// CHECK-SAME: connections = array<i32: 0, -1, 1, 1, 1, -1, 1, 0>
inst.program "two-step" implements "allreduce" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 2 : i32, connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 0>, transfer_bound = 3 : i32} {
  inst.rank 0 {
    // CHECK: inst.load_reduce_store input[0], input[0] of 1 into output[0], output[0] of 1 block 0 final{{$}}
    // CHECK-NEXT: inst.signal into connection(0) block 0
    // CHECK-NEXT: inst.wait connection(1) block 0
    // CHECK-NEXT: }
    %0 = inst.send input[1] into connection(0) extent 1 block 0
    %1 = inst.recv_reduce_copy_send input[0], connection(1) into output[0], connection(0) block 0 final
    %2 = inst.recv connection(1) into output[1] extent 1 block 0
  }
  // CHECK: inst.rank 1
  inst.rank 1 {
    // CHECK-NEXT: inst.load_reduce_store input[1] of 0, input[1] into output[1], output[1] of 0 extent 1 block 0 final{{$}}
    // CHECK-NEXT: inst.signal into connection(1) block 0
    // CHECK-NEXT: inst.wait connection(0) block 0
    %0 = inst.send input[0] into connection(1) block 0
    %1 = inst.recv_reduce_copy_send connection(0), input[1] into output[1], connection(1) extent 1 block 0 final
    %2 = inst.recv connection(0) into output[0] block 0
  }
}

// -----

// In place each rank would overwrite what the other has yet to read, so it would have to wait for it: the messages stay.
// CHECK-LABEL: "one-step"
inst.program "one-step" implements "allreduce" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 0>} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into connection(0)
    %0 = inst.send input[0] into connection(0) block 0
    // CHECK-NEXT: inst.recv_reduce_copy input[0], connection(1) into output[0]
    %1 = inst.recv_reduce_copy input[0], connection(1) into output[0] block 0 final
  }
  inst.rank 1 {
    %0 = inst.send input[0] into connection(1) block 0
    %1 = inst.recv_reduce_copy connection(0), input[0] into output[0] block 0 final
  }
}

// -----

// A value that its owner computes is awaited: one signal tells all. Rank 0 waits for those that read it.
// CHECK-LABEL: "computed"
// PAIRS-LABEL: "computed"
inst.program "computed" implements "custom" ranks 3 attributes {input_chunks = array<i32: 1, 1, 1>,
    output_chunks = array<i32: 1, 1, 1>, scratch_chunks = array<i32: 1, 0, 0>, in_place_offsets = array<i32: 0, 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 2, 1, 2>} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into scratch[0]
    %0 = inst.copy input[0] into scratch[0] block 0
    // CHECK-NEXT: inst.signal into connection([[C:.*]]) block 0
    // Rank 2 is in no group with rank 0.
    // PAIRS: inst.send scratch[0] into connection(0)
    %1 = inst.send scratch[0] into connection(0) block 0
    // Ascending, like all operands.
    // CHECK-NEXT: inst.wait connection(1), connection(2) block 0
    // CHECK-NEXT: }
  }
  inst.rank 1 {
    // CHECK: inst.wait connection([[C]]) block 0
    // CHECK-NEXT: inst.load_reduce_store scratch[0] of 0, input[0] into output[0]
    // CHECK-NEXT: inst.signal into connection({{.*}})
    %0 = inst.recv_reduce_copy connection(0), input[0] into output[0] block 0
  }
  inst.rank 2 {
    %0 = inst.recv_reduce_copy connection(0), input[0] into output[0] block 0
  }
}

// -----

// What leaves the group is sent by an instruction of its own. Rank 0 has nothing left to do but to wait.
// PAIRS-LABEL: "split"
inst.program "split" implements "custom" ranks 3 attributes {input_chunks = array<i32: 1, 1, 0>,
    output_chunks = array<i32: 0, 1, 1>, scratch_chunks = array<i32: 0, 0, 0>, in_place_offsets = array<i32: 0, 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 2>} {
  // PAIRS: inst.rank 0
  inst.rank 0 {
    // PAIRS-NEXT: inst.wait connection(1) block 0
    // PAIRS-NEXT: }
    %0 = inst.send input[0] into connection(0) block 0
  }
  inst.rank 1 {
    // PAIRS: inst.load_reduce_store input[0] of 0, input[0] into output[0] block 0
    // PAIRS-NEXT: inst.signal into connection(1) block 0
    // PAIRS-NEXT: inst.send output[0] into connection(0) block 0
    %0 = inst.recv_reduce_copy_send connection(0), input[0] into output[0], connection(1) block 0
  }
  inst.rank 2 {
    // PAIRS: inst.recv connection(0) into output[0] block 0
    %0 = inst.recv connection(1) into output[0] block 0
  }
}

// -----

// Thread blocks of a rank wait for each other as before.
// CHECK-LABEL: "blocks"
inst.program "blocks" implements "custom" ranks 2 attributes {input_chunks = array<i32: 2, 1>,
    output_chunks = array<i32: 1, 0>, scratch_chunks = array<i32: 1, 0>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, connections = array<i32: 1, 0, 1, 0>} {
  inst.rank 0 {
    // CHECK: %[[L:.*]] = inst.load_reduce_store input[0], input[0] of 1 into scratch[0] block 0
    %0 = inst.recv_reduce_copy input[0], connection(0) into scratch[0] block 0
    // CHECK: %[[C:.*]] = inst.copy scratch[0] into output[0] block 1 after %[[L]]
    %1 = inst.copy scratch[0] into output[0] block 1 after %0
    // So does who writes last, if nobody reads in between.
    // CHECK: inst.copy input[1] into output[0] block 2 after %[[C]]
    %2 = inst.copy input[1] into output[0] block 2 after %1
  }
  inst.rank 1 {
    %0 = inst.send input[0] into connection(0) block 0
  }
}

// -----

// An end of a connection belongs to one thread block: two of a rank that wait for one have a counter each.
// CHECK-LABEL: "waiters"
// CHECK-SAME: connections = array<i32: 0, -1, 1, 1, 0, -1, 1, 1, 1, -1, 1, 0, 1, -1, 1, 0>
inst.program "waiters" implements "custom" ranks 2 attributes {input_chunks = array<i32: 1, 2>,
    output_chunks = array<i32: 0, 2>, scratch_chunks = array<i32: 1, 0>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1, 0, 1, 1, 1>} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into scratch[0] block 0
    // CHECK-NEXT: inst.signal into connection(0) block 0
    // CHECK-NEXT: inst.signal into connection(1) block 0
    // CHECK-NEXT: inst.wait connection(2), connection(3) block 0
    %0 = inst.copy input[0] into scratch[0] block 0
    %1 = inst.send scratch[0] into connection(0) block 0
    %2 = inst.send scratch[0] into connection(1) block 0
  }
  inst.rank 1 {
    // CHECK: inst.wait connection(0) block 0
    // CHECK: inst.wait connection(1) block 1
    %0 = inst.recv_reduce_copy connection(0), input[0] into output[0] block 0
    %1 = inst.recv_reduce_copy connection(1), input[1] into output[1] block 1
  }
}

// -----

// Stored, a message would replace what rank 1 has yet to read, here in two chunks: it is loaded.
// CHECK-LABEL: "loaded"
// CHECK-SAME: connections = array<i32: 1, -1, 1, 0>
inst.program "loaded" implements "custom" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 0, 2>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1>} {
  inst.rank 0 {
    // CHECK: inst.wait connection(0) block 0
    // CHECK-NEXT: }
    %0 = inst.send input[0] into connection(0) count 2 block 0
  }
  // CHECK: inst.rank 1
  inst.rank 1 {
    // CHECK-NEXT: inst.copy input[0] into scratch[0] count 2
    %0 = inst.copy input[0] into scratch[0] count 2 block 0
    // CHECK-NEXT: inst.copy scratch[0] into output[0] count 2
    %1 = inst.copy scratch[0] into output[0] count 2 block 0
    // CHECK-NEXT: inst.load_reduce_store input[0] of 0 into scratch[0] count 2
    // CHECK-NEXT: inst.signal into connection(0) block 0
    %2 = inst.recv connection(0) into scratch[0] count 2 block 0
    // CHECK-NEXT: inst.copy scratch[0] into output[2] count 2
    %3 = inst.copy scratch[0] into output[2] count 2 block 0
  }
}
