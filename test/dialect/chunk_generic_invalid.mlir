// The generic form can say of a copy that it is final.
// RUN: not occl-opt %s 2>&1 | FileCheck %s
// CHECK: a.coll:3:5: error: 'chunk.copy' has what its kind of operation does not: a channel, a hint, or that it is final

"chunk.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>,
    operations = {locations = [loc("a.coll":3:5)],
        numbers = array<i64: 0, 0, 0, 0, 0, 1, -1, -1, 0, 0, 1, 1, 1, 0, 0, 1, -1, -1, 0, 1, 0>}}> : () -> ()
