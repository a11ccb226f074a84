// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks=max-thread-blocks=2 | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks='max-thread-blocks=3 layout=peers' | FileCheck %s --check-prefix=PEERS
// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks='max-thread-blocks=2 layout=phases' | FileCheck %s --check-prefix=PHASES
// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks='max-thread-blocks=2 layout=balanced' | FileCheck %s --check-prefix=BALANCED
// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks='max-thread-blocks=3 layout=balanced colors=1' | FileCheck %s --check-prefix=TOGETHER
// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks='max-thread-blocks=3 layout=balanced spread-local=true' | FileCheck %s --check-prefix=SPREAD

// One connection for each source, set of destinations and channel, in this order.
// CHECK-LABEL: "routes"
// ONE-SAME: connections = array<i32: 0, 0, 1, 1, 0, 0, 2, 1, 2, 0, 7, 1, 1, 2, 0, 1, 1>
inst.program "routes" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // ONE: inst.send input[0] into connection(1), connection(0)
    // ONE-NEXT: inst.send input[1] into connection(0)
    // ONE-NEXT: inst.send input[2] into connection(2)
    %0 = inst.send input[0] into transfer(0), transfer(1)
    %1 = inst.send input[1] into transfer(2)
    %2 = inst.send input[2] into transfer(3) channel 7
  }
  inst.rank 1 {
    // ONE: inst.recv connection(1) into output[0]
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
    %2 = inst.recv transfer(2) into output[2]
    %3 = inst.recv transfer(3) into output[3]
    %4 = inst.recv transfer(4) into scratch[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.send input[0] into transfer(4)
  }
}

// -----

// An end of a connection has one thread block; a fused instruction ties its connections together; local work stays with what precedes it.
// CHECK-LABEL: "blocks"
inst.program "blocks" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // ONE: inst.send input[0] into connection(0) block 0
    // ONE-NEXT: inst.send input[1] into connection(1) block 0
    // ONE-NEXT: inst.copy {{.*}} block 0
    // ONE-NEXT: inst.send input[0] into connection(0) block 0
    // TWO: inst.send input[0] into connection(0) block [[A:[01]]]
    // TWO-NEXT: inst.send input[1] into connection(1) block [[B:[01]]]
    // TWO-NEXT: inst.copy {{.*}} block [[B]]
    // TWO-NEXT: inst.send input[0] into connection(0) block [[A]]
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.copy input[0] into output[0]
    %3 = inst.send input[0] into transfer(2)
  }
  inst.rank 1 {
    // CHECK: inst.recv_copy_send {{.*}} block 0
    // CHECK-NEXT: inst.recv {{.*}} block 0
    %0 = inst.recv_copy_send transfer(0) into transfer(3)
    %1 = inst.recv transfer(2) into output[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(3) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
}

// -----

// The most work first, and each to the block that has least; a copy belongs to the message before it, and counts there.
// CHECK-LABEL: "work"
inst.program "work" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // TWO: inst.send input[0] into connection(0) block 0
    // TWO-NEXT: inst.copy {{.*}} block 0
    // TWO-NEXT: inst.send input[1] into connection(1) count 3 block 1
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.copy input[0] into output[0] count 4
    %2 = inst.send input[1] into transfer(1) count 3
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[0] count 3
  }
}

// -----

// The smaller groups fill up what the largest leaves.
// CHECK-LABEL: "largest"
inst.program "largest" implements "custom" ranks 4 attributes {input_chunks = array<i32: 4, 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // TWO: inst.send input[0] into connection(0) block 1
    // TWO-NEXT: inst.send input[1] into connection(1) block 1
    // TWO-NEXT: inst.send input[2] into connection(2) count 2 block 0
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[2] into transfer(2) count 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[0]
  }
  inst.rank 3 {
    %0 = inst.recv transfer(2) into output[0] count 2
  }
}

// -----

// Blocks asked for are kept, and messages between the same ranks for different blocks get different channels. What asks for nothing
// goes to the block with least work; numbers that nobody uses are left out.
// CHECK-LABEL: "asked"
// CHECK-SAME: connections = array<i32: 0, 0, 1, 1, 0, 1, 1, 1, 0, 2, 1, 1>
inst.program "asked" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // ONE: inst.send input[0] into connection(0) block 1
    // ONE-NEXT: inst.send input[1] into connection(1) block 0
    // ONE-NEXT: inst.copy {{.*}} block 0
    // ONE-NEXT: inst.send input[2] into connection(2) block 1
    %0 = inst.send input[0] into transfer(0) block 1
    %1 = inst.send input[1] into transfer(1) block 0
    %2 = inst.copy input[0] into output[0] block 0
    %3 = inst.send input[2] into transfer(2)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
    %2 = inst.recv transfer(2) into output[2]
  }
}

// -----

// Without a number, there are as many blocks as channels that the source names.
// CHECK-LABEL: "channels"
inst.program "channels" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into connection(0) block 0
    // CHECK-NEXT: inst.send input[1] into connection(1) block 1
    %0 = inst.send input[0] into transfer(0) channel 2
    %1 = inst.send input[1] into transfer(1) channel 5
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) channel 2 into output[0]
    %1 = inst.recv transfer(1) channel 5 into output[1]
  }
}

// -----

// Two flows from rank to rank: with two blocks each gets a channel and a block of its own on all ranks; with one they share.
// CHECK-LABEL: "flows"
// ONE-SAME: connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 2>
// TWO-SAME: connections = array<i32: 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 2, 1, 1, 1, 2>
inst.program "flows" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[2] into transfer(2)
    %3 = inst.send input[3] into transfer(3)
  }
  inst.rank 1 {
    // TWO: inst.recv_copy_send connection(0) into output[0], connection(2) block 0
    // TWO-NEXT: inst.recv_copy_send connection(1) into output[1], connection(3) block 1
    %0 = inst.recv_copy_send transfer(0) into output[0], transfer(4)
    %1 = inst.recv_copy_send transfer(1) into output[1], transfer(5)
    %2 = inst.recv_copy_send transfer(2) into output[2], transfer(6)
    %3 = inst.recv_copy_send transfer(3) into output[3], transfer(7)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(4) into output[0]
    %1 = inst.recv transfer(5) into output[1]
    %2 = inst.recv transfer(6) into output[2]
    %3 = inst.recv transfer(7) into output[3]
  }
}

// -----

// Two exchanges, of one chunk and then of two. What thread blocks share: the other rank, the time, or the work.
// PEERS-LABEL: "doubling"
// PHASES-LABEL: "doubling"
// BALANCED-LABEL: "doubling"
inst.program "doubling" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  inst.rank 0 {
    // PEERS: inst.send input[0] into connection(0) block 1
    // PEERS-NEXT: inst.recv connection({{[0-9]}}) into output[1] extent 1 block 1
    // PEERS-NEXT: inst.send input[0] into connection(1) count 2 block 0
    // PEERS-NEXT: inst.recv connection({{[0-9]}}) into output[2] count 2 extent 2 block 0
    // PHASES: inst.send input[0] into connection(0) block 0
    // PHASES-NEXT: inst.recv connection({{[0-9]}}) into output[1] extent 1 block 0
    // PHASES-NEXT: inst.send input[0] into connection(1) count 2 block 0
    // PHASES-NEXT: inst.recv connection({{[0-9]}}) into output[2] count 2 extent 2 block 1
    // BALANCED: inst.send input[0] into connection(0) block 0
    // BALANCED-NEXT: inst.recv connection({{[0-9]}}) into output[1] extent 1 block 1
    // BALANCED-NEXT: inst.send input[0] into connection(1) count 2 block 0
    // BALANCED-NEXT: inst.recv connection({{[0-9]}}) into output[2] count 2 extent 2 block 1
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.recv transfer(1) into output[1] extent 1
    %2 = inst.send input[0] into transfer(2) count 2
    %3 = inst.recv transfer(3) into output[2] count 2 extent 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.send input[1] into transfer(1) extent 1
  }
  inst.rank 2 {
    %0 = inst.recv transfer(2) into output[0] count 2
    %1 = inst.send output[0] into transfer(3) count 2 extent 2
  }
}

// -----

// Flows share a channel if one color is asked for.
// TOGETHER-LABEL: "two_flows"
// TOGETHER-SAME: connections = array<i32: 0, 0, 1, 1>
inst.program "two_flows" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
}

// -----

// Local work goes with the message before it, or where there is least.
// BALANCED-LABEL: "local"
// SPREAD-LABEL: "local"
inst.program "local" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  inst.rank 0 {
    // BALANCED: inst.send input[0] into connection(0) block 0
    // BALANCED-NEXT: inst.copy {{.*}} block 0
    // SPREAD: inst.send input[0] into connection(0) block 1
    // SPREAD-NEXT: inst.copy {{.*}} block 0
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.copy scratch[0] into scratch[1] count 3
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}
