// RUN: occl-opt %s -split-input-file -inst-propagate-copies | FileCheck %s

// What is read from a copy is read from its original; a copy that nobody reads goes, also a chain of copies.
// CHECK-LABEL: "chain"
inst.program "chain" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.send input[1] into transfer(0){{$}}
    // CHECK-NEXT: inst.reduce input[1], input[3] into output[0]{{$}}
    // CHECK-NEXT: }
    %0 = inst.copy input[1] into scratch[0]
    %1 = inst.copy scratch[0] into scratch[2]
    %2 = inst.send scratch[2] into transfer(0)
    %3 = inst.reduce scratch[0], input[3] into output[0]
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

// A part of a copy, and neighbouring copies of neighbours; not copies with different distances, nor more than was copied.
// CHECK-LABEL: "ranges"
inst.program "ranges" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[2] into transfer(0){{$}}
    // CHECK: inst.send input[0] into transfer(1) count 3{{$}}
    // CHECK: inst.send scratch[2] into transfer(2) count 2{{$}}
    %0 = inst.copy input[0] into scratch[0] count 2
    %1 = inst.copy input[2] into scratch[2]
    %2 = inst.send scratch[2] into transfer(0)
    %3 = inst.send scratch[0] into transfer(1) count 3
    %4 = inst.copy input[0] into scratch[3]
    %5 = inst.send scratch[2] into transfer(2) count 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1] count 3
    %2 = inst.recv transfer(2) into scratch[0] count 2
  }
}

// -----

// Not if the original was overwritten since, nor if the copy was.
// CHECK-LABEL: "overwritten"
inst.program "overwritten" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.copy output[0] into scratch[0]
    // CHECK-NEXT: inst.copy input[0] into output[0]
    // CHECK-NEXT: inst.send scratch[0] into transfer(0)
    // CHECK-NEXT: inst.reduce input[0], input[1] into scratch[0]
    // CHECK-NEXT: inst.send scratch[0] into transfer(1)
    %0 = inst.copy output[0] into scratch[0]
    %1 = inst.copy input[0] into output[0]
    %2 = inst.send scratch[0] into transfer(0)
    %3 = inst.reduce input[0], input[1] into scratch[0]
    %4 = inst.send scratch[0] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
}

// -----

// Of neighbouring copies the older one counts.
// CHECK-LABEL: "older"
inst.program "older" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send scratch[0] into transfer(0) count 2
    %0 = inst.copy output[0] into scratch[0]
    %1 = inst.copy input[0] into output[0]
    %2 = inst.copy output[1] into scratch[1]
    %3 = inst.send scratch[0] into transfer(0) count 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0] count 2
  }
}

// -----

// In place, a copy of the input to itself is none; and a write to output may overwrite the original in the input.
// CHECK-LABEL: "aliased"
inst.program "aliased" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = true} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into output[0]
    // CHECK-NEXT: inst.send input[0] into transfer(0)
    // CHECK-NEXT: inst.copy input[1] into scratch[0]
    // CHECK-NEXT: inst.copy input[2] into output[1]
    // CHECK-NEXT: inst.send scratch[0] into transfer(1)
    %0 = inst.copy input[0] into output[0]
    %1 = inst.send output[0] into transfer(0)
    %2 = inst.copy input[1] into scratch[0]
    %3 = inst.copy input[2] into output[1]
    %4 = inst.send scratch[0] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
}

// -----

// In place, an input that an output stands for is not the copy's target: it has another name.
// CHECK-LABEL: "renamed"
inst.program "renamed" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, out_of_place = false, in_place = true} {
  inst.rank 0 {
    // CHECK: inst.send input[1] into transfer(0)
    %0 = inst.copy scratch[0] into output[1]
    %1 = inst.send input[1] into transfer(0)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

// Not where the instruction would then write to a part of what it reads.
// CHECK-LABEL: "overlapping"
inst.program "overlapping" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.copy output[0] into scratch[0] count 2
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[1] count 2
    %0 = inst.copy output[0] into scratch[0] count 2
    %1 = inst.reduce scratch[0], input[0] into output[1] count 2
  }
}

// -----

// Undone where a wait for the original would close a circle: transfer(1) has room when transfer(0) is received, that is when
// transfer(3) is sent, and that has room when transfer(2) is received, which then would wait for the original to be sent.
// CHECK-LABEL: "stuck"
inst.program "stuck" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, depth = 1 : i32} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.copy scratch[0] into scratch[1]
    // CHECK-NEXT: inst.send input[0] into transfer(0)
    // CHECK-NEXT: inst.send scratch[1] into transfer(1)
    %0 = inst.copy scratch[0] into scratch[1]
    %1 = inst.send input[0] into transfer(0)
    %2 = inst.send scratch[1] into transfer(1)
    %3 = inst.recv transfer(2) into scratch[0]
    %4 = inst.recv transfer(3) into output[0]
  }
  inst.rank 1 {
    %0 = inst.send input[0] into transfer(2)
    %1 = inst.send output[0] into transfer(3)
    %2 = inst.recv transfer(0) into output[0]
    %3 = inst.recv transfer(1) into output[1]
  }
}

// -----

// Copies from two buffers are no copy of a range of one, also if the numbers of the chunks go on.
// CHECK-LABEL: "two_buffers"
inst.program "two_buffers" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send scratch[0] into transfer(0) count 2
    %0 = inst.copy input[0] into scratch[0]
    %1 = inst.copy output[1] into scratch[1]
    %2 = inst.send scratch[0] into transfer(0) count 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0] count 2
  }
}

// -----

// What the older of two copies took was overwritten before the newer one.
// CHECK-LABEL: "older_behind"
inst.program "older_behind" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send scratch[0] into transfer(0) count 2
    %0 = inst.copy output[1] into scratch[1]
    %1 = inst.copy input[1] into output[1]
    %2 = inst.copy output[0] into scratch[0]
    %3 = inst.send scratch[0] into transfer(0) count 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0] count 2
  }
}

// -----

// A sum may read the original where it stores its result.
// CHECK-LABEL: "same_place"
inst.program "same_place" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.reduce output[0], input[0] into output[0]
    %0 = inst.copy output[0] into scratch[0]
    %1 = inst.reduce scratch[0], input[0] into output[0]
  }
}

// -----

// What comes back to where it was needs no copy, and nothing waits for one.
// CHECK-LABEL: "back"
inst.program "back" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.reduce input[0], input[1] into output[0]{{$}}
    // CHECK-NEXT: inst.copy input[2] into output[2]{{$}}
    // CHECK-NEXT: }
    %0 = inst.reduce input[0], input[1] into output[0]
    %1 = inst.copy output[0] into scratch[0]
    %2 = inst.copy scratch[0] into output[0]
    // In place these are one chunk, but not out of place.
    %3 = inst.copy input[2] into scratch[2]
    %4 = inst.copy scratch[2] into output[2]
  }
}

// -----

// Called in place only, input and output are one.
// CHECK-LABEL: "back_in_place"
inst.program "back_in_place" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, out_of_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.copy input[3] into output[2]{{$}}
    // CHECK-NEXT: }
    %0 = inst.copy input[2] into scratch[2]
    %1 = inst.copy scratch[2] into output[2]
    %2 = inst.copy input[3] into output[2]
  }
}
