// RUN: occl-opt %s -inst-use-direct-access=groups=0,1,0 | FileCheck %s
// RUN: not occl-opt %s -inst-use-direct-access=groups=0,1 2>&1 | FileCheck %s --check-prefix=FEW

// The groups that are given, neighbours or not: rank 2 loads, rank 1 receives.
// FEW: error: 'inst.program' op has 3 ranks, but groups are given for 2
inst.program "given" implements "custom" ranks 3 attributes {input_chunks = array<i32: 1, 1, 1>,
    output_chunks = array<i32: 0, 1, 1>, scratch_chunks = array<i32: 0, 0, 0>, in_place_offsets = array<i32: 0, 0, 0>,
    in_place = false, connections = array<i32: 0, 0, 2, 1, 2>} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into connection(0)
    %0 = inst.send input[0] into connection(0) block 0
  }
  inst.rank 1 {
    // CHECK: inst.recv_reduce_copy connection(0), input[0] into output[0]
    %0 = inst.recv_reduce_copy connection(0), input[0] into output[0] block 0
  }
  inst.rank 2 {
    // CHECK: inst.load_reduce_store input[0] of 0, input[0] into output[0]
    %0 = inst.recv_reduce_copy connection(0), input[0] into output[0] block 0
  }
}
