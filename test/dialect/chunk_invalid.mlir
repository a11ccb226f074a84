// RUN: occl-opt %s -split-input-file -verify-diagnostics

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-error @+1 {{names chunks [1, 3) of input of rank 0, which has 2 chunks}}
  %0 = chunk.read input[0][1] count 2
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-error @+1 {{names rank 1 of 1 ranks}}
  %0 = chunk.read input[1][0]
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-error @+1 {{needs a count of at least 1, got 0}}
  %0 = chunk.read input[0][0] count 0
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-note @+1 {{the source is defined here}}
  %0 = chunk.read input[0][0] count 2
  // expected-error @+1 {{stores 1 chunks, but a source has 2}}
  %1 = chunk.copy %0 into output[0][0]
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{needs at least 2 sources, got 1}}
  %1 = chunk.reduce %0 into output[0][0]
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{needs a channel below 4096, got 4096}}
  %1 = chunk.copy %0 into output[0][0] channel 4096
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-error @+1 {{expected input, output or scratch, got inputs}}
  %0 = chunk.read inputs[0][0]
}

// -----

// expected-error @+1 {{needs one entry a rank (2) in output_chunks, got 1}}
chunk.program "x" implements "y" ranks 2 attributes {input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {}

// -----

// expected-error @+1 {{must be between 0 and 4194304, got -1}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: -1>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {}

// -----

// expected-error @+1 {{needs between 1 and 4096 ranks, got 0}}
chunk.program "x" implements "y" ranks 0 attributes {input_chunks = array<i32>, output_chunks = array<i32>,
    scratch_chunks = array<i32>, in_place_offsets = array<i32>} {}

// -----

// expected-error @+1 {{names root 1 of 1 ranks}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, root = 1 : i32} {}

// -----

// expected-error @+1 {{expected protocol simple, ll or ll128, got fast}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, protocol = "fast"} {}

// -----

// expected-error @+1 {{needs a depth between 1 and 64, got 0}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, depth = 0 : i32} {}

// -----

// expected-error @+1 {{must claim to work in place, out of place, or both}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, in_place = false, out_of_place = false} {}

// -----

// expected-error @+1 {{has requirements that end in the middle of one}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, requirements = array<i32: 0, 0, 1, 1, 0>} {}

// -----

// expected-error @+1 {{names chunks [2, 3) of output of rank 0, which has 2 chunks}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, requirements = array<i32: 0, 2, 1, 1, 0, 0>} {}

// -----

// expected-error @+1 {{has hints that end in the middle of one}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -1, -1>} {}

// -----

// expected-error @+1 {{asks in hint 1 for 0 parts; between 1 and 4096 are possible}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -1, -1, -1, 0, -1, -1, -1>} {}

// -----

// expected-error @+1 {{asks in hint 0 for 4097 parts; between 1 and 4096 are possible}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 4097, -1, -1, -1>} {}

// -----

// expected-error @+1 {{has in hint 0 the group -2; groups are numbered from 0, and -1 is none}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -2, -1, -1>} {}

// -----

// expected-error @+1 {{asks in hint 0 for thread block 1024; they are numbered below 1024}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -1, 1024, -1>} {}

// -----

// expected-error @+1 {{asks in hint 0 for thread block -2; they are numbered below 1024}}
chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -1, -1, -2>} {}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -1, -1, -1>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{names hint 1 of 1 hints}}
  %1 = chunk.copy %0 into output[0][0] hint 1
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>, hints = array<i32: 1, -1, -1, -1>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{names hint -2 of 1 hints}}
  %1 = chunk.copy %0 into output[0][0] hint -2
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-error @+1 {{expected an operation on chunks, got chunk.move}}
  %0 = chunk.move input[0][0]
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  // expected-error @+1 {{expected the name of an earlier line, got %1}}
  %0 = chunk.copy %1 into output[0][0]
}

// -----

chunk.program "x" implements "y" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{needs 1 sources, got 2}}
  %1 = chunk.copy %0, %0 into output[0][0]
}
