// RUN: occl-opt %s -split-input-file -chunk-parallelize -verify-diagnostics

chunk.program "x" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2048, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 3, -1, -1, -1, 1024, -1, -1, -1>} {
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[1][0] hint 0
  // expected-error @+1 {{parallelism cuts every chunk of the program into 3072, so that a buffer has 6291456 chunks; a plan allows 4194304; ask for fewer parts, and for numbers with a small common multiple [E100]}}
  %2 = chunk.copy %1 into output[0][0] hint 1
}

// -----

chunk.program "x" implements "mine" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 4093, -1, -1, -1, 4091, -1, -1, -1>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{parallelism cuts every chunk of the program into more pieces than a plan may have chunks; a plan allows 4194304; ask for fewer parts, and for numbers with a small common multiple [E100]}}
  %1 = chunk.copy %0 into output[1][0] hint 0
  %2 = chunk.copy %1 into output[0][0] hint 1
}

// -----

chunk.program "x" implements "mine" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 5, -1, -1, -1>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{part 4 of 5 needs channel 4999; there are 4096: ask for fewer parts or smaller channels [E101]}}
  %1 = chunk.copy %0 into output[1][0] channel 999 hint 0
}

// -----

chunk.program "x" implements "mine" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 3, -1, -1, 600>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{part 1 needs thread block 1201; there are 1024: ask for fewer parts or smaller thread blocks [E102]}}
  %1 = chunk.copy %0 into output[1][0] hint 0
}
