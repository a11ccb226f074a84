// RUN: occl-opt %s -split-input-file -chunk-mark-final | FileCheck %s

// The reduction whose result an output holds at the end is final; the one on its way is not.
// CHECK-LABEL: "chain"
chunk.program "chain" implements "allreduce" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[1][0]
  %2 = chunk.read input[2][0]
  // CHECK: chunk.reduce {{.*}} into scratch[1][0]{{$}}
  %3 = chunk.reduce %0, %1 into scratch[1][0]
  // CHECK: chunk.reduce {{.*}} into scratch[2][0] final
  %4 = chunk.reduce %3, %2 into scratch[2][0]
  %5 = chunk.copy %4 into output[0][0]
}

// -----

// A result that is overwritten before the end completes nothing, and a mark that is wrong goes.
// CHECK-LABEL: "overwritten"
chunk.program "overwritten" implements "allreduce" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[1][0]
  // CHECK: chunk.reduce {{.*}} into output[0][0]{{$}}
  %2 = chunk.reduce %0, %1 into output[0][0] final
  // CHECK: chunk.reduce {{.*}} into output[0][0] final
  %3 = chunk.reduce %1, %0 into output[0][0]
}

// -----

// Of a reduce only the root's output counts.
// CHECK-LABEL: "rooted"
chunk.program "rooted" implements "reduce" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, root = 1 : i32} {
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[1][0]
  // CHECK: chunk.reduce {{.*}} into output[0][0]{{$}}
  %2 = chunk.reduce %0, %1 into output[0][0]
  // CHECK: chunk.reduce {{.*}} into output[1][0] final
  %3 = chunk.reduce %0, %1 into output[1][0]
}

// -----

// Of a user's collective only what it requires counts; a part of a range is enough.
// CHECK-LABEL: "required"
chunk.program "required" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, requirements = array<i32: 1, 1, 1, 2, 0, 1, 1, 1>} {
  %0 = chunk.read input[0][0] count 2
  %1 = chunk.read input[1][0] count 2
  // CHECK: chunk.reduce {{.*}} into output[0][0] count 2{{$}}
  %2 = chunk.reduce %0, %1 into output[0][0] count 2
  // CHECK: chunk.reduce {{.*}} into output[1][0] count 2 final
  %3 = chunk.reduce %0, %1 into output[1][0] count 2
}

// -----

// In place only, a reduction into input is one into the output chunk that it is.
// CHECK-LABEL: "aliased"
chunk.program "aliased" implements "custom" ranks 1 attributes {input_chunks = array<i32: 2>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 1>,
    out_of_place = false, requirements = array<i32: 0, 1, 1, 2, 0, 0, 0, 1>} {
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[0][1]
  // CHECK: chunk.reduce {{.*}} into output[0][1]{{$}}
  %2 = chunk.reduce %0, %1 into output[0][1]
  // CHECK: chunk.reduce {{.*}} into input[0][0] final
  %3 = chunk.reduce %1, %0 into input[0][0]
}

// -----

// A scan: what rank 0 keeps is reduced further on rank 1, so that nothing may be divided.
// CHECK-LABEL: "scan"
chunk.program "scan" implements "custom" ranks 2 attributes {input_chunks = array<i32: 1, 1>,
    output_chunks = array<i32: 1, 1>, scratch_chunks = array<i32: 1, 1>, in_place_offsets = array<i32: 0, 0>,
    in_place = false, requirements = array<i32: 0, 0, 1, 2, 0, 0, 1, 0, 1, 0, 1, 3, 0, 0, 1, 0, 1, 0>} {
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[1][0]
  // CHECK: chunk.reduce {{.*}} into output[0][0]{{$}}
  %2 = chunk.reduce %0, %1 into output[0][0]
  %3 = chunk.copy %2 into scratch[1][0]
  // CHECK: chunk.reduce {{.*}} into output[1][0]{{$}}
  %4 = chunk.reduce %3, %1 into output[1][0]
}
