// RUN: occl-opt %s -inst-aggregate -verify-diagnostics

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
