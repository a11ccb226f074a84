// Parts of a long range and of short ones overlap each other crosswise: what waits for what follows from the ranges alone.
// MSCCLang keeps dependences within an instance, and so lets the sends of chunk 1 overtake the copy of both.
// RUN: occlc check %s --instances 2 --max-thread-blocks 4 | FileCheck %s
// RUN: occlc check %s --instances 3 --max-thread-blocks 8 --no-fuse --no-aggregate | FileCheck %s
// CHECK: proved out of place:
// CHECK: dependencies
chunk.program "mixed" implements "allgather" ranks 2 attributes {in_place = false,
    input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 4, 4>, part_chunks = 2 : i32,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 2>} {
  %0 = chunk.read input[0][0] count 2
  %1 = chunk.copy %0 into scratch[0][0] count 2
  %2 = chunk.read scratch[0][0]
  %3 = chunk.copy %2 into scratch[1][0]
  %4 = chunk.read scratch[0][1]
  %5 = chunk.copy %4 into scratch[1][1]
  %6 = chunk.read input[1][0] count 2
  %7 = chunk.copy %6 into scratch[1][2] count 2
  %8 = chunk.read scratch[1][0] count 4
  %9 = chunk.copy %8 into output[1][0] count 4
  %10 = chunk.copy %9 into output[0][0] count 4
}
