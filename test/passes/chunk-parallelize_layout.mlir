// RUN: occl-opt %s -split-input-file -chunk-parallelize=instances=2 | FileCheck %s
// When ranges may be cut along their chunks, and when each chunk is cut.

// A range within a part stays one: the second instance has a part of its own.
// CHECK-LABEL: "within"
chunk.program "within" implements "custom" ranks 2 attributes {input_chunks = array<i32: 3, 3>,
    output_chunks = array<i32: 3, 3>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 3 : i32, in_place = false} {
  // CHECK: chunk.read input[0][1] count 2
  // CHECK: chunk.read input[0][4] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}

// -----

// The source lies in two parts: chunk i becomes [2i, 2i + 2).
// CHECK-LABEL: "source_beyond"
chunk.program "source_beyond" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 2 : i32, in_place = false} {
  // CHECK: chunk.read input[0][2] count 2
  // CHECK: chunk.read input[0][4] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into scratch[1][0] count 2
}

// -----

// The target does.
// CHECK-LABEL: "target_beyond"
chunk.program "target_beyond" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 2 : i32, in_place = false} {
  // CHECK: into output[1][2] count 2
  // CHECK: into output[1][4] count 2
  %0 = chunk.read scratch[0][0] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}

// -----

// The input begins within a part of the output.
// CHECK-LABEL: "offset"
chunk.program "offset" implements "custom" ranks 2 attributes {input_chunks = array<i32: 3, 3>,
    output_chunks = array<i32: 6, 6>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 1>,
    part_chunks = 3 : i32, in_place = false} {
  // CHECK: chunk.read input[0][2] count 2
  // CHECK: chunk.read input[0][4] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}

// -----

// Something is required of a part of a part, of what begins within one, or from there.
// CHECK-LABEL: "of_some"
chunk.program "of_some" implements "mine" ranks 2 attributes {input_chunks = array<i32: 3, 3>,
    output_chunks = array<i32: 3, 3>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 3 : i32, in_place = false, requirements = array<i32: 1, 0, 1, 1, 0, 0>} {
  // CHECK: chunk.read input[0][2] count 2
  // CHECK: chunk.read input[0][4] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}

// -----

// CHECK-LABEL: "begins_within"
chunk.program "begins_within" implements "mine" ranks 2 attributes {input_chunks = array<i32: 3, 3>,
    output_chunks = array<i32: 6, 6>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 3 : i32, in_place = false, requirements = array<i32: 1, 1, 3, 1, 0, 0>} {
  // CHECK: chunk.read input[0][2] count 2
  // CHECK: chunk.read input[0][4] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}

// -----

// CHECK-LABEL: "from_within"
chunk.program "from_within" implements "mine" ranks 2 attributes {input_chunks = array<i32: 6, 6>,
    output_chunks = array<i32: 3, 3>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 3 : i32, in_place = false, requirements = array<i32: 1, 0, 3, 1, 0, 1>} {
  // CHECK: chunk.read input[0][2] count 2
  // CHECK: chunk.read input[0][4] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}

// -----

// CHECK-LABEL: "of_whole"
chunk.program "of_whole" implements "mine" ranks 2 attributes {input_chunks = array<i32: 6, 6>,
    output_chunks = array<i32: 3, 3>, scratch_chunks = array<i32: 3, 3>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 3 : i32, in_place = false, requirements = array<i32: 1, 0, 3, 1, 0, 3>} {
  // CHECK: chunk.read input[0][1] count 2
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2
}
