// RUN: occl-opt %s -split-input-file -verify-diagnostics -inst-use-direct-access

// expected-error @+1 {{has transfers; this pass runs after inst-synchronize}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 1, 1>, output_chunks = array<i32: 1, 1>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

// expected-error @+1 {{does not complete with its ranks' instructions in their order; this pass runs after inst-schedule}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 1, 1>, output_chunks = array<i32: 1, 1>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    connections = array<i32: 0, 0, 1, 1, 1, 0, 1, 0>} {
  inst.rank 0 {
    %0 = inst.recv connection(1) into output[0] block 0
    %1 = inst.send input[0] into connection(0) block 0
  }
  inst.rank 1 {
    %0 = inst.recv connection(0) into output[0] block 0
    %1 = inst.send input[0] into connection(1) block 0
  }
}
