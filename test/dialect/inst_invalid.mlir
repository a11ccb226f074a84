// RUN: occl-opt %s -split-input-file -verify-diagnostics

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{has operands of another shape than its kind of instruction takes}}
    %0 = inst.send input[0] into output[0]
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{has operands of another shape than its kind of instruction takes}}
    %0 = inst.recv transfer(0) into transfer(1)
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{names chunks [1, 3) of input of rank 0, which has 2 chunks}}
    %0 = inst.copy input[1] into output[0] count 2
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{names chunks [0, 1) of scratch of rank 0, which has 0 chunks}}
    %0 = inst.copy input[1] into scratch[0]
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{needs an extent below the 1 chunks of a part, got 1}}
    %0 = inst.copy input[1] into output[0] extent 1
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{needs a thread block below 1024, got 1024}}
    %0 = inst.copy input[1] into output[0] block 1024
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{is of group -2; groups are numbered from 0, and -1 is none}}
    %0 = inst.copy input[1] into output[0] group -2
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{needs a count of at least 1, got 0}}
    %0 = inst.copy input[1] into output[0] count 0
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{transfer 0 needs one sender and a receiver, got 1 and 0}}
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
  }
  inst.rank 1 {
    // expected-error @+1 {{transfer 0 needs one sender and a receiver, got 0 and 1}}
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    // expected-error @+1 {{transfer 0 has two ends on rank 0}}
    %1 = inst.recv transfer(0) into output[0]
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-note @+1 {{the sender is here}}
    %0 = inst.send input[0] into transfer(0) count 2
  }
  inst.rank 1 {
    // expected-error @+1 {{receives 1 chunks of extent 0, but 2 of extent 0 are sent}}
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{names connection 0 of 0}}
    %0 = inst.send input[0] into connection(0)
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, 0, 1, 1>} {
  inst.rank 0 {
  }
  inst.rank 1 {
    // expected-error @+1 {{sends on connection 0, which starts on rank 0}}
    %0 = inst.send input[0] into connection(0)
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, 0, 1, 1>} {
  inst.rank 0 {
    // expected-error @+1 {{receives from connection 0, which does not end on rank 0}}
    %0 = inst.recv connection(0) into output[0]
  }
  inst.rank 1 {
  }
}

// -----

// expected-error @+1 {{connection 0 carries 1 messages, but rank 1 receives 0}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, 0, 1, 1>} {
  inst.rank 0 {
    %0 = inst.send input[0] into connection(0)
  }
  inst.rank 1 {
  }
}

// -----

// expected-error @+1 {{has a connection 0 that is not from one rank to ascending others}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, 0, 1, 0>} {
  inst.rank 0 {
  }
  inst.rank 1 {
  }
}

// -----

// expected-error @+1 {{has a connection 0 of channel 4096; a plan allows 4096}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, 4096, 1, 1>} {
  inst.rank 0 {
  }
  inst.rank 1 {
  }
}

// -----

// expected-error @+1 {{has connections that end in the middle of one}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, 0, 2, 1>} {
  inst.rank 0 {
  }
  inst.rank 1 {
  }
}

// -----

// expected-error @+1 {{needs one inst.rank for each of 2 ranks, got 1}}
inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  // expected-error @+1 {{expected rank 0 here, got 1}}
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{expected a channel below 4096, got 4096}}
    %0 = inst.send input[0] into transfer(0) channel 4096
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  inst.rank 0 {
    // expected-error @+1 {{expected input, output, scratch, transfer or connection, got wire}}
    %0 = inst.send input[0] into wire(0)
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, -1, 1, 1, 0, 0, 1, 1>} {
  inst.rank 0 {
    // expected-error @+1 {{names another rank's buffer, which only load_reduce_store may}}
    %0 = inst.copy input[0] of 1 into output[0]
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, -1, 1, 1, 0, 0, 1, 1>} {
  inst.rank 0 {
    // expected-error @+1 {{names rank 2 of 2 ranks}}
    %0 = inst.load_reduce_store input[0] of 2 into output[0]
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, -1, 1, 1, 0, 0, 1, 1>} {
  inst.rank 0 {
    // expected-error @+1 {{expected a rank below 4096, got 4096}}
    %0 = inst.load_reduce_store input[0] of 4096 into output[0]
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, -1, 1, 1, 0, 0, 1, 1>} {
  inst.rank 0 {
    // expected-error @+1 {{names connection 0, which is a counter}}
    %0 = inst.send input[0] into connection(0)
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, -1, 1, 1, 0, 0, 1, 1>} {
  inst.rank 0 {
    // expected-error @+1 {{names connection 1, which is no counter}}
    %0 = inst.signal into connection(1)
  }
  inst.rank 1 {
  }
}

// -----

inst.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>, connections = array<i32: 0, -1, 1, 1, 0, 0, 1, 1>} {
  inst.rank 0 {
    %0 = inst.signal into connection(0)
  }
  inst.rank 1 {
    // expected-error @+1 {{waits for signal 2 of counter 0, which has 1}}
    %0 = inst.wait connection(0) count 2
  }
}

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // expected-error @+1 {{expected an instruction, got inst.move}}
    %0 = inst.move input[0] into output[0]
  }
}

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // expected-error @+1 {{expected an instruction, got inst.gate}}
    inst.gate input[0] into output[0]
  }
}

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    %a = inst.copy input[0] into output[0]
    // expected-error @+1 {{has the name '%a' of an earlier line}}
    %a = inst.copy input[1] into output[1]
  }
}

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // expected-error @+1 {{expected the name of an earlier line, got %1}}
    %0 = inst.copy input[0] into output[0] after %1
  }
}

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // expected-error @+1 {{expected a location, or an alias that is defined above}}
    inst.copy input[0] into output[0] loc(#below)
  }
}
#below = loc("a.coll":1:1)

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // expected-error @+1 {{names transfer 67108864; they are numbered below 67108864}}
    inst.send input[0] into transfer(67108864)
  }
}

// -----

// Identifiers far above the number of instructions.
inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // expected-error @+1 {{transfer 67108863 needs one sender and a receiver, got 1 and 0}}
    inst.send input[0] into transfer(67108863)
  }
}

// -----

inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, transfer_bound = 3 : i32} {
  inst.rank 0 {
    // expected-error @+1 {{names transfer 3; they are numbered below 3}}
    inst.send input[0] into transfer(3)
  }
}

// -----

// expected-error @+1 {{needs a number up to 67108864 as transfer_bound, got -1 : i32}}
inst.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, transfer_bound = -1 : i32} {
  inst.rank 0 {
  }
}
