// RUN: occl-opt %s -split-input-file -inst-schedule=max-depth=2 -verify-diagnostics

// expected-error @+1 {{does not complete with up to 2 messages in flight on a connection [E111]}}
inst.program "deeper" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 1, 1>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, depth = 1 : i32, connections = array<i32: 0, 0, 1, 1, 0, 1, 1, 1>} {
  inst.rank 0 {
    %0 = inst.send scratch[0] into connection(0) block 0
    %1 = inst.send scratch[0] into connection(0) block 0
    // expected-note @+1 {{this is stuck on rank 0}}
    %2 = inst.send scratch[0] into connection(0) block 0
    %3 = inst.copy input[1] into scratch[0] block 0
    %4 = inst.send scratch[0] into connection(1) block 0
  }
  inst.rank 1 {
    // expected-note @+1 {{this is stuck on rank 1}}
    %0 = inst.recv connection(1) into output[0] block 0
    %1 = inst.recv_reduce_copy output[0], connection(0) into output[0] block 0
    %2 = inst.recv_reduce_copy output[0], connection(0) into output[0] block 0
    %3 = inst.recv_reduce_copy output[0], connection(0) into output[0] block 0
  }
}

// -----

// expected-error @+1 {{has instructions that wait for each other in a cycle [E112]}}
inst.program "cycle" implements "custom" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 0>} {
  inst.rank 0 {
    %0 = inst.recv_copy_send connection(1) into connection(0) block 0
  }
  inst.rank 1 {
    %0 = inst.recv_copy_send connection(0) into connection(1) block 0
  }
}

// -----

// expected-error @+1 {{has messages whose order differs between the ends of a connection [E110]}}
inst.program "crossed" implements "custom" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(1) into output[0]
    %1 = inst.recv transfer(0) into output[1]
  }
}
