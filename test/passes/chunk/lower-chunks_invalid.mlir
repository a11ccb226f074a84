// RUN: occl-opt %s -split-input-file -lower-chunks -verify-diagnostics

chunk.program "x" implements "custom" ranks 1 attributes {input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>,
    hints = array<i32: 1, -1, 1, 2>} {
  %0 = chunk.read input[0][0]
  // expected-error @+1 {{this stays on its rank, where one thread block does it, but thread block 1 is asked to send and 2 to receive; ask for one [E103]}}
  %1 = chunk.copy %0 into output[0][0] hint 0
}
