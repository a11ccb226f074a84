// RUN: occl-opt %s -split-input-file -inst-fuse=max-fan-out=1 | FileCheck %s --check-prefix=NARROW
// RUN: occl-opt %s -split-input-file -inst-fuse=fold-arrivals=false | FileCheck %s --check-prefix=STORED

// Only messages count as ways on which a value goes on: a copy of it does not.
// NARROW-LABEL: "copied"
inst.program "copied" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.recv transfer(1) into output[0]
  }
  inst.rank 1 {
    // NARROW: inst.rank 1
    // NARROW-NEXT: inst.recv_copy_send transfer(0) into output[0], transfer(1)
    // NARROW-NEXT: inst.copy output[0] into output[1]
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.copy output[0] into output[1]
    %2 = inst.send output[0] into transfer(1)
  }
}

// -----

// Only what arrives is stored first: what lies in memory is reduced from there.
// STORED-LABEL: "own"
inst.program "own" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // STORED: inst.rank 0
    // STORED-NEXT: inst.reduce input[0], input[1] into output[0]
    // STORED-NEXT: }
    %0 = inst.copy input[0] into scratch[0]
    %1 = inst.reduce scratch[0], input[1] into output[0]
  }
}
