// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks -verify-diagnostics
// RUN: not occl-opt %s -split-input-file -inst-assign-thread-blocks=max-thread-blocks=0 2>&1 | FileCheck %s
// CHECK: cannot be executed by 0 thread blocks

// expected-error @+1 {{has messages whose order differs between the ends of a connection}}
inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(1) into output[0]
    %1 = inst.recv transfer(0) into output[1]
  }
}

// -----

// expected-error @+1 {{already has connections; this pass runs before inst-assign-thread-blocks}}
inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, connections = array<i32: 0, 0, 1, 1>} {
  inst.rank 0 {
    %0 = inst.send input[0] into connection(0)
  }
  inst.rank 1 {
    %0 = inst.recv connection(0) into output[0]
  }
}
