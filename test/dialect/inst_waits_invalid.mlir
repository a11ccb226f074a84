// The generic form can say of an instruction that it waits for itself.
// RUN: not occl-opt %s 2>&1 | FileCheck %s
// CHECK: a.coll:3:5: error: 'inst.copy' waits for what are not ascending positions of earlier instructions

"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [loc("a.coll":3:5)],
      numbers = array<i64: 1, 1, 1, 1, 0, -1, -1, 0, 0, 0, -1, 0, 1, -1, 0, 0>}}> : () -> ()
}) : () -> ()
