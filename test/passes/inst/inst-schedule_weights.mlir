// RUN: occl-opt %s -inst-schedule | FileCheck %s --check-prefixes=CHECK,USUAL
// RUN: occl-opt %s -inst-schedule='weights=3,1,1,1,1,1,7,0,0,2,1000,0' | FileCheck %s --check-prefixes=CHECK,FAR
// RUN: occl-opt %s -inst-schedule='weights=3,1,1,1,1,1,7,0,0,2,7,1000' | FileCheck %s --check-prefixes=CHECK,FAR
// RUN: occl-opt %s -inst-schedule='weights=3,1,1,1,1,1,1000,0,0,2,1000,0' | FileCheck %s --check-prefixes=CHECK,USUAL
// RUN: not occl-opt %s -inst-schedule='weights=3,1,1,1,1,1,7' 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not occl-opt %s -inst-schedule='weights=3,1,1,1,1,1,7,0,0,2,7,0,0,1,7,0' 2>&1 | FileCheck %s --check-prefix=FEW

// What is sent first depends on what is on its way for longest: usually what rank 1 has still to copy on; over a way of 1,000, in
// latency or for each chunk, what rank 2 only stores.
// FEW: error: 'inst.program' op needs eight weights of steps and four for each way between two ranks, in the order of the ranks
// CHECK: inst.rank 0
// USUAL-NEXT: inst.send input[0] into connection(0)
// USUAL-NEXT: inst.send input[1] into connection(1)
// FAR-NEXT: inst.send input[1] into connection(1)
// FAR-NEXT: inst.send input[0] into connection(0)
inst.program "urgent" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 0, 0, 0>, in_place_offsets = array<i32: 0, 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 1, 1, 0, 0, 1, 2>} {
  inst.rank 0 {
    %0 = inst.send input[0] into connection(0) block 0
    %1 = inst.send input[1] into connection(1) block 0
  }
  inst.rank 1 {
    %0 = inst.recv connection(0) into output[0] block 0
    %1 = inst.copy output[0] into output[1] block 0
    %2 = inst.copy output[1] into output[2] block 0
  }
  inst.rank 2 {
    %0 = inst.recv connection(1) into output[0] block 0
  }
}
