// RUN: occl-opt %s -split-input-file -inst-assign-thread-blocks -verify-diagnostics

// expected-error @+1 {{has messages whose order differs between the ends of a connection [E110]}}
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

// MSCCLang lets two thread blocks share an end of a connection, where they overtake each other.
// -----

inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // expected-note @+1 {{thread block 1 is asked for here}}
    %0 = inst.send input[0] into transfer(0) channel 3 block 1
    // expected-error @+1 {{rank 0 sends to rank 1 on channel 3 with thread block 2 here and 1 there; an end of a connection has one owner: give one of them another channel [E106]}}
    %1 = inst.send input[1] into transfer(1) channel 3 block 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) channel 3 into output[0]
    %1 = inst.recv transfer(1) channel 3 into output[1]
  }
}

// -----

inst.program "x" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) channel 0
    %1 = inst.send input[1] into transfer(1) channel 0
  }
  inst.rank 1 {
    // expected-note @+1 {{thread block 0 is asked for here}}
    %0 = inst.recv transfer(0) channel 0 into output[0] block 0
    // expected-error @+1 {{rank 1 receives from rank 0 on channel 0 with thread block 4 here and 0 there; an end of a connection has one owner: give one of them another channel [E107]}}
    %1 = inst.recv transfer(1) channel 0 into output[1] block 4
  }
}

// -----

inst.program "x" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) channel 0
    %1 = inst.send input[1] into transfer(1) channel 0
  }
  inst.rank 1 {
    // expected-note @+1 {{thread block 0 is asked for here}}
    %0 = inst.recv transfer(0) channel 0 into output[0] block 0
    %1 = inst.recv_copy_send transfer(1) channel 0 into transfer(2) channel 0
    // expected-error @+1 {{thread blocks 1 and 0 of rank 1 meet here: instructions take part in messages of both; ask for one block, or for other channels [E108]}}
    %2 = inst.send input[2] into transfer(3) channel 0 block 1
  }
  inst.rank 2 {
    %0 = inst.recv transfer(2) channel 0 into output[0]
    %1 = inst.recv transfer(3) channel 0 into output[1]
  }
}
