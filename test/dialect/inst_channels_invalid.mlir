// The generic form can say channels of operands that the text cannot.
// RUN: not occl-opt %s -split-input-file 2>&1 | FileCheck %s

// CHECK: a.coll:3:5: error: 'inst.copy' names a buffer of rank -2
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [loc("a.coll":3:5)],
      numbers = array<i64: 1, 1, 0, 1, 0, -1, -1, 0, 0, 0, -2, 0, 1, -1, 0>}}> : () -> ()
}) : () -> ()

// -----

// CHECK: a.coll:3:5: error: 'inst.copy' names a buffer of rank -32768
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [loc("a.coll":3:5)],
      numbers = array<i64: 1, 1, 0, 1, 0, -1, -1, 0, 0, 0, -1, 0, 1, -32768, 0>}}> : () -> ()
}) : () -> ()

// -----

// CHECK: a.coll:3:5: error: 'inst.send' needs a channel below 4096, got 4096
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [loc("a.coll":3:5)],
      numbers = array<i64: 1, 1, 0, 1, 0, -1, -1, 0, 0, 0, -1, 0, 3, 4096, 0>}}> : () -> ()
}) : () -> ()

// -----

// CHECK: a.coll:3:5: error: 'inst.send' needs a channel below 4096, got -2
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [loc("a.coll":3:5)],
      numbers = array<i64: 1, 1, 0, 1, 0, -1, -1, 0, 0, 0, -1, 0, 3, -2, 0>}}> : () -> ()
}) : () -> ()

// -----

// CHECK: a.coll:3:5: error: 'inst.recv' names channel 0 beside a connection
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [loc("a.coll":3:5)],
      numbers = array<i64: 1, 1, 0, 1, 0, -1, -1, 0, 0, 4, 0, 0, 1, -1, 0>}}> : () -> ()
}) : () -> ()
