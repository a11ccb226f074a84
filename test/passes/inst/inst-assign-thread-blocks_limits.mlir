// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks="max-thread-blocks=2 max-channels=2" -verify-diagnostics

inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // expected-error @+1 {{this asks for channel 2, but with --max-channels 2 the last one is channel 1; allow more, or give --share-channels if --instances or 'parallelize' has asked for it [E104]}}
    %0 = inst.send input[0] into transfer(0) channel 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) channel 2 into output[0]
  }
}

// -----

inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) channel 1
    %1 = inst.send input[0] into transfer(1) block 0
    // expected-error @+1 {{between rank 0 and rank 1 this needs a channel of its own, the next is channel 2, but with --max-channels 2 the last one is channel 1; allow more [E105]}}
    %2 = inst.send input[0] into transfer(2) block 1
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) channel 1 into output[0]
    %1 = inst.recv transfer(1) into output[1]
    %2 = inst.recv transfer(2) into output[2]
  }
}

// -----

inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // expected-error @+1 {{this asks for thread block 2, but --max-thread-blocks allows 2, from 0 on [E109]}}
    %0 = inst.send input[0] into transfer(0) block 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}
