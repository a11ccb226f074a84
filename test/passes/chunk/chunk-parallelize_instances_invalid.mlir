// RUN: occl-opt %s -chunk-parallelize=instances=4096 -verify-diagnostics

// The first copy or reduction is named: a read is no work.
chunk.program "x" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2048, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{parallelism cuts every chunk of the program into 4096, so that a buffer has 8388608 chunks; a plan allows 4194304; ask for fewer parts, and for numbers with a small common multiple [E100]}}
  %1 = chunk.copy %0 into output[1][0]
}
