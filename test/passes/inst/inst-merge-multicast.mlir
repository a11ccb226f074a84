// RUN: occl-opt %s -split-input-file -inst-merge-multicast | FileCheck %s

// One value for two ranks is sent once, where it was sent first.
// CHECK-LABEL: "merged"
inst.program "merged" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0)
    // CHECK-NEXT: inst.copy
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.copy input[1] into output[1]
    %2 = inst.send input[0] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into output[0]
    %0 = inst.recv transfer(0) into output[0]
  }
  inst.rank 2 {
    // CHECK: inst.recv_reduce_copy input[0], transfer(0) into output[0]
    %0 = inst.recv_reduce_copy input[0], transfer(1) into output[0]
  }
}

// -----

// Not if the content changed in between, the range or the channel differs, or it goes to the same rank.
// CHECK-LABEL: "different"
inst.program "different" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: transfer(0)
    // CHECK: transfer(1)
    // CHECK: transfer(2)
    // CHECK: transfer(3)
    %0 = inst.send scratch[0] into transfer(0)
    %1 = inst.copy input[1] into scratch[0]
    %2 = inst.send scratch[0] into transfer(1)
    %3 = inst.send scratch[0] into transfer(2) count 2
    %4 = inst.send scratch[0] into transfer(3) channel 1
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
  inst.rank 2 {
    // CHECK: inst.rank 2
    // CHECK-NEXT: transfer(1)
    %0 = inst.recv transfer(1) into output[0]
    %1 = inst.recv transfer(2) into output[0] count 2
    %2 = inst.recv transfer(3) into output[2]
  }
}

// -----

// A second one to the same rank begins a second message.
// CHECK-LABEL: "twice"
inst.program "twice" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0)
    // CHECK-NEXT: inst.send input[0] into transfer(1)
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[0] into transfer(1)
    %2 = inst.send input[0] into transfer(2)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
  inst.rank 2 {
    // CHECK: inst.rank 2
    // CHECK-NEXT: inst.recv transfer(0) into output[0]
    %0 = inst.recv transfer(2) into output[0]
  }
}

// -----

// Undone where messages would cross: rank 1 takes the values in one order, rank 2 in the other.
// CHECK-LABEL: "crossed"
inst.program "crossed" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK-COUNT-4: inst.send
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[1] into transfer(2)
    %3 = inst.send input[0] into transfer(3)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(2) into output[1]
    %1 = inst.recv transfer(3) into output[0]
  }
}

// -----

// Undone where the depth does not allow it: the first message stays until rank 2 has it, which first waits for what rank 1 makes
// of the second.
// CHECK-LABEL: "shallow"
inst.program "shallow" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false, depth = 1 : i32} {
  inst.rank 0 {
    // CHECK-COUNT-4: inst.send
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[0] into transfer(1)
    %2 = inst.send input[1] into transfer(2)
    %3 = inst.send input[1] into transfer(3)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(2) into output[1]
    %2 = inst.send output[1] into transfer(4)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(4) into output[0]
    %1 = inst.recv_reduce_copy output[0], transfer(1) into output[0]
    %2 = inst.recv transfer(3) into output[1]
  }
}

// -----

// With two in flight it is sent once.
// CHECK-LABEL: "deep"
inst.program "deep" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false, depth = 2 : i32} {
  inst.rank 0 {
    // CHECK-COUNT-2: inst.send
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[0] into transfer(1)
    %2 = inst.send input[1] into transfer(2)
    %3 = inst.send input[1] into transfer(3)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(2) into output[1]
    %2 = inst.send output[1] into transfer(4)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(4) into output[0]
    %1 = inst.recv_reduce_copy output[0], transfer(1) into output[0]
    %2 = inst.recv transfer(3) into output[1]
  }
}

// -----

// Each channel has messages of its own.
// CHECK-LABEL: "channels"
inst.program "channels" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK-COUNT-2: inst.send
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[0] into transfer(1) channel 1
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) channel 1 into output[0]
  }
}

// -----

// A message has one extent, also where chunks of one size allow to take the value for another chunk.
// CHECK-LABEL: "extents"
inst.program "extents" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 4 : i32, in_place = false, uniform_chunks = true} {
  inst.rank 0 {
    // CHECK-COUNT-2: inst.send
    %0 = inst.send scratch[0] into transfer(0)
    %1 = inst.send scratch[0] into transfer(1) extent 1
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[1] extent 1
  }
}

// -----

// Copies are no sends.
// CHECK-LABEL: "copies"
inst.program "copies" implements "custom" ranks 1 attributes {input_chunks = array<i32: 1>,
    output_chunks = array<i32: 2>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into output[0]
    // CHECK-NEXT: inst.copy input[0] into output[1]
    %0 = inst.copy input[0] into output[0]
    %1 = inst.copy input[0] into output[1]
  }
}
