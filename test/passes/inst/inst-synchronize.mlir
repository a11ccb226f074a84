// RUN: occl-opt %s -split-input-file -inst-synchronize | FileCheck %s

// Only other thread blocks are waited for, and only where nothing else implies it.
// CHECK-LABEL: "minimal"
inst.program "minimal" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    in_place = false} {
  inst.rank 0 {
    // CHECK: %[[A:.*]] = inst.copy input[0] into scratch[0] block 0{{$}}
    %0 = inst.copy input[0] into scratch[0] block 0
    // CHECK-NEXT: inst.copy scratch[0] into output[0] block 0{{$}}
    %1 = inst.copy scratch[0] into output[0] block 0
    // CHECK-NEXT: %[[B:.*]] = inst.copy scratch[0] into scratch[1] block 1 after %[[A]]{{$}}
    %2 = inst.copy scratch[0] into scratch[1] block 1
    // Block 1 has waited for the first already.
    // CHECK-NEXT: inst.copy scratch[0] into output[1] block 1{{$}}
    %3 = inst.copy scratch[0] into output[1] block 1
    // The second implies the first: one wait.
    // CHECK-NEXT: inst.reduce scratch[0], scratch[1] into output[2] block 2 after %[[B]]{{$}}
    %4 = inst.reduce scratch[0], scratch[1] into output[2] block 2
  }
}

// -----

// Several waits where several are needed; stale ones of the input go; a write waits for readers.
// CHECK-LABEL: "several"
inst.program "several" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    in_place = false} {
  inst.rank 0 {
    // CHECK: %[[A:.*]] = inst.copy input[0] into scratch[0] block 0
    %0 = inst.copy input[0] into scratch[0] block 0
    // CHECK-NEXT: %[[B:.*]] = inst.copy input[1] into scratch[1] block 1{{$}}
    %1 = inst.copy input[1] into scratch[1] block 1 after %0
    // CHECK-NEXT: %[[C:.*]] = inst.reduce scratch[0], scratch[1] into output[0] block 2 after %[[A]], %[[B]]{{$}}
    %2 = inst.reduce scratch[0], scratch[1] into output[0] block 2
    // CHECK-NEXT: inst.copy input[2] into scratch[0] block 0 after %[[C]]{{$}}
    %3 = inst.copy input[2] into scratch[0] block 0
  }
}

// -----

// In place, copies of a range onto itself write nothing: who reads the range waits for none of them. Out of place they are copies.
// CHECK-LABEL: "itself"
inst.program "itself" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    in_place = true} {
  inst.rank 0 {
    // CHECK: %[[A:.*]] = inst.copy input[0] into output[0] block 0
    %0 = inst.copy input[0] into output[0] block 0
    // CHECK-NEXT: inst.copy input[1] into output[1] block 0
    %1 = inst.copy input[1] into output[1] block 0
    // CHECK-NEXT: inst.copy input[0] into scratch[0] block 1{{$}}
    %2 = inst.copy input[0] into scratch[0] block 1
    // CHECK-NEXT: inst.copy input[1] into scratch[1] block 1{{$}}
    %3 = inst.copy input[1] into scratch[1] block 1
    // CHECK-NEXT: inst.copy output[0] into scratch[2] block 1 after %[[A]]{{$}}
    %4 = inst.copy output[0] into scratch[2] block 1
  }
}

// -----

// One thread block never waits, whatever was asked before.
// CHECK-LABEL: "alone"
inst.program "alone" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into scratch[0] block 0{{$}}
    %0 = inst.copy input[0] into scratch[0] block 0
    // CHECK-NEXT: inst.copy scratch[0] into output[1] block 0{{$}}
    %1 = inst.copy scratch[0] into output[1] block 0
    // CHECK-NEXT: inst.copy input[2] into output[2] block 0{{$}}
    %2 = inst.copy input[2] into output[2] block 0 after %0
  }
}
