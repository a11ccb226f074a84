// RUN: occl-opt %s -inst-assign-thread-blocks='max-thread-blocks=2 layout=balanced colors=1' | FileCheck %s --check-prefixes=CHECK,USUAL
// RUN: occl-opt %s -inst-assign-thread-blocks='max-thread-blocks=2 layout=balanced colors=1 weights=3,1,1,10,1,1,7,0' | FileCheck %s --check-prefixes=CHECK,PULL
// RUN: not occl-opt %s -inst-assign-thread-blocks=weights=1 2>&1 | FileCheck %s --check-prefix=FEW

// Blocks have equal work: to send four chunks is most of it, unless receiving one takes ten times as long as anything else.
// FEW: error: 'inst.program' op needs eight weights of steps
// CHECK: inst.rank 0
// USUAL-NEXT: inst.send input[0] into connection(0) count 4 block 0
// USUAL-NEXT: inst.recv connection(1) into output[0] count 3 block 1
// USUAL-NEXT: inst.recv connection(2) into scratch[0] count 2 block 1
// PULL-NEXT: inst.send input[0] into connection(0) count 4 block 1
// PULL-NEXT: inst.recv connection(1) into output[0] count 3 block 0
// PULL-NEXT: inst.recv connection(2) into scratch[0] count 2 block 1
inst.program "work" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 4
    %1 = inst.recv transfer(1) into output[0] count 3
    %2 = inst.recv transfer(2) into scratch[0] count 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0] count 4
    %1 = inst.send input[0] into transfer(1) count 3
  }
  inst.rank 2 {
    %0 = inst.send input[0] into transfer(2) count 2
  }
}
