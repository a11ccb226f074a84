// RUN: occl-opt %s -split-input-file -chunk-parallelize | FileCheck %s
// RUN: occl-opt %s -split-input-file -chunk-parallelize=instances=2 | FileCheck %s --check-prefix=TWICE
// RUN: occl-opt %s -split-input-file -chunk-parallelize='instances=2 share-channels=true' | FileCheck %s --check-prefix=SHARED

// Chunk i becomes [2i, 2i + 2); the second part goes on a channel of its own. Sizes, offsets and requirements grow with it.
// CHECK-LABEL: "scale"
// CHECK-SAME: in_place_offsets = array<i32: 0, 2>, input_chunks = array<i32: 4, 4>
// CHECK-SAME: output_chunks = array<i32: 4, 6>, part_chunks = 2 : i32
// CHECK-SAME: requirements = array<i32: 1, 2, 2, 2, 0, 0, 1, 2>
// CHECK-SAME: scratch_chunks = array<i32: 0, 2>
// CHECK-NOT: hint
// TWICE-LABEL: "scale"
// TWICE-SAME: part_chunks = 4 : i32
chunk.program "scale" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 3>, scratch_chunks = array<i32: 0, 1>, in_place_offsets = array<i32: 0, 1>,
    part_chunks = 1 : i32, in_place = false, requirements = array<i32: 1, 1, 1, 2, 0, 0, 1, 1>,
    hints = array<i32: 2, -1, -1, -1>} {
  // CHECK: %[[A:.*]] = chunk.read input[0][2]
  // CHECK-NEXT: %[[A0:.*]] = chunk.copy %[[A]] into scratch[1][0]{{$}}
  // CHECK-NEXT: %[[B:.*]] = chunk.read input[0][3]
  // CHECK-NEXT: %[[B0:.*]] = chunk.copy %[[B]] into scratch[1][1] channel 1{{$}}
  %0 = chunk.read input[0][1]
  %1 = chunk.copy %0 into scratch[1][0] hint 0
  // The parts of a result are the parts of what uses it, if that has as many.
  // CHECK: %[[C:.*]] = chunk.read input[1][2]
  // CHECK-NEXT: chunk.reduce %[[A0]], %[[C]] into output[1][2] final{{$}}
  // CHECK: chunk.reduce %[[B0]], %{{.*}} into output[1][3] channel 1 final{{$}}
  %2 = chunk.read input[1][1]
  %3 = chunk.reduce %1, %2 into output[1][1] hint 0 final
  // An op that asks for nothing stays whole: it reads what the parts wrote.
  // CHECK: %[[D:.*]] = chunk.read output[1][2] count 2
  // CHECK-NEXT: chunk.copy %[[D]] into output[0][0] count 2{{$}}
  %4 = chunk.copy %3 into output[0][0]
}

// -----

// Channels and thread blocks move by one more than the largest that anything in the program asks for; a record for each part.
// CHECK-LABEL: "strides"
// CHECK-SAME: hints = array<i32: 1, 7, 1, 4, 1, 7, 6, 9, 1, -1, 3, -1>
chunk.program "strides" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 2, 7, 1, 4, 1, -1, 3, -1>} {
  %0 = chunk.read input[0][0]
  // CHECK: into output[1][0] channel 2 hint 0
  // CHECK: into output[1][1] channel 5 hint 1
  %1 = chunk.copy %0 into output[1][0] channel 2 hint 0
  // CHECK: chunk.copy %{{.*}} into output[1][2] count 2 channel 1 hint 2
  %2 = chunk.copy %0 into output[1][1] channel 1 hint 1
}

// -----

// Different numbers of parts: chunks are cut by their least common multiple. A part of a range of several chunks is a range;
// which parts it meets of ops with other ranges is left to the ranges.
// CHECK-LABEL: "mixed"
// CHECK-SAME: part_chunks = 6 : i32
chunk.program "mixed" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 2, 2>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 2, -1, -1, -1, 3, -1, -1, -1>} {
  // CHECK: %[[A:.*]] = chunk.read input[0][0] count 6
  // CHECK-NEXT: chunk.copy %[[A]] into scratch[1][0] count 6{{$}}
  // CHECK: %[[B:.*]] = chunk.read input[0][6] count 6
  // CHECK-NEXT: chunk.copy %[[B]] into scratch[1][6] count 6 channel 1{{$}}
  %0 = chunk.read input[0][0] count 2
  %1 = chunk.copy %0 into scratch[1][0] count 2 hint 0
  // CHECK: %[[C:.*]] = chunk.read scratch[1][6] count 2
  // CHECK-NEXT: chunk.copy %[[C]] into output[0][0] count 2{{$}}
  // CHECK: %[[D:.*]] = chunk.read scratch[1][8] count 2
  // CHECK-NEXT: chunk.copy %[[D]] into output[0][2] count 2 channel 1{{$}}
  // CHECK: %[[E:.*]] = chunk.read scratch[1][10] count 2
  // CHECK-NEXT: chunk.copy %[[E]] into output[0][4] count 2 channel 2{{$}}
  %2 = chunk.read scratch[1][1]
  %3 = chunk.copy %2 into output[0][0] hint 1
}

// -----

// Everything has the same parts: still the pieces of a chunk stand together, so that each element is reduced as without parts. A
// part of a range of several chunks goes through all of them from its first on, and meets several parts of its chunks.
// CHECK-LABEL: "instances"
// CHECK-SAME: part_chunks = 3 : i32
// TWICE-LABEL: "instances"
// TWICE-SAME: scratch_chunks = array<i32: 0, 8>
chunk.program "instances" implements "allgather" ranks 2 attributes {input_chunks = array<i32: 3, 3>, part_chunks = 3 : i32,
    output_chunks = array<i32: 6, 6>, scratch_chunks = array<i32: 0, 4>, in_place_offsets = array<i32: 0, 3>} {
  // CHECK: chunk.read input[0][1] count 2
  // CHECK-NEXT: chunk.copy %{{.*}} into scratch[1][2] count 2{{$}}
  // TWICE: chunk.read input[0][2] count 2
  // TWICE-NEXT: chunk.copy %{{.*}} into scratch[1][4] count 2{{$}}
  // TWICE-NEXT: chunk.read input[0][4] count 2
  // TWICE-NEXT: chunk.copy %{{.*}} into scratch[1][6] count 2 channel 1{{$}}
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into scratch[1][2] count 2
  // TWICE-NEXT: %[[FIRST:.*]] = chunk.read scratch[1][4]{{$}}
  // TWICE-NEXT: chunk.copy %[[FIRST]] into output[1][8]{{$}}
  // TWICE-NEXT: %[[SECOND:.*]] = chunk.read scratch[1][5]{{$}}
  // TWICE-NEXT: chunk.copy %[[SECOND]] into output[1][9] channel 1{{$}}
  %2 = chunk.read scratch[1][2]
  %3 = chunk.copy %2 into output[1][4]
}

// -----

// Parts share the channel of the source if they are told to; but not with thread blocks of their own.
// SHARED-LABEL: "shared"
chunk.program "shared" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  // SHARED: into output[1][0] channel 3{{$}}
  // SHARED: into output[1][1] channel 3{{$}}
  // SHARED: into output[1][2]{{$}}
  // SHARED: into output[1][3]{{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[1][0] channel 3
  %2 = chunk.copy %0 into output[1][1]
}

// -----

// SHARED-LABEL: "apart"
chunk.program "apart" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 1, 0, 0, -1>} {
  // SHARED: into output[1][0] hint 0{{$}}
  // SHARED: into output[1][1] channel 1 hint 1{{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[1][0] hint 0
}

// -----

// The receiver's counts as well.
// SHARED-LABEL: "apart_at_the_receiver"
chunk.program "apart_at_the_receiver" implements "mine" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 1, -1, -1, 0>} {
  // SHARED: into output[1][0] hint 0{{$}}
  // SHARED: into output[1][1] channel 1 hint 1{{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[1][0] hint 0
}
