// Reductions of values of different extents, several of them from one rank, sent on to several ranks: proved.
// RUN: occlc check %s | FileCheck %s
// RUN: occlc check %s --no-fuse --max-thread-blocks 3 | FileCheck %s
// CHECK: proved out of place
chunk.program "mixed" implements "mixed" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 4 : i32, in_place = false,
    requirements = array<i32: 2, 0, 1, 3, 0, 0, 0, 1, 1, 2, 1, 3, 1, 1, 0, 0>} {
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into scratch[1][0]
  %2 = chunk.copy %1 into output[1][3]
  %3 = chunk.read input[0][1]
  %4 = chunk.read input[1][2]
  %5 = chunk.reduce %3, %0, %4 into scratch[1][1]
  %6 = chunk.copy %5 into output[2][0]
  %7 = chunk.copy %0 into scratch[2][2]
}
