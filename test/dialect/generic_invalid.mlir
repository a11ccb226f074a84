// What a generic form, or bytecode, says of a list of instructions is checked: numbers that are none, and what verifiers refuse.
// RUN: occl-opt %s -split-input-file -verify-diagnostics

"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  // expected-error @+1 {{expected a dictionary of numbers, array<i64>, and locations, an array, got array<i64: 1>}}
  "inst.rank"() <{rank = 0 : i32, steps = array<i64: 1>}> : () -> ()
}) : () -> ()

// -----

"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  // expected-error @+1 {{has numbers that are no flat form of its property}}
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [], numbers = array<i64: 1, 1, 0, 1>}}> : () -> ()
}) : () -> ()

// -----

// A location that is not there.
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>}> ({
  // expected-error @+1 {{has numbers that are no flat form of its property}}
  "inst.rank"() <{rank = 0 : i32, steps = {locations = [],
      numbers = array<i64: 1, 1, 0, 1, 0, -1, -1, 0, 0, 0, -1, 0, 1, -1, 0>}}> : () -> ()
}) : () -> ()

// -----

// expected-error @+1 {{attribute 'transfer_bound' failed to satisfy constraint: 32-bit signless integer attribute}}
"inst.program"() <{algorithm = "x", collective = "y", num_ranks = 0 : i32, input_chunks = array<i32>,
    output_chunks = array<i32>, scratch_chunks = array<i32>, in_place_offsets = array<i32>, transfer_bound = 3 : i64}> ({
}) : () -> ()

// -----

// expected-error @+1 {{has numbers that are no flat form of its property}}
"chunk.program"() <{algorithm = "x", collective = "y", num_ranks = 1 : i32, input_chunks = array<i32: 1>,
    output_chunks = array<i32: 1>, scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 0>,
    operations = {locations = [loc(unknown)], numbers = array<i64: 3, 0, 0, 0, 0, 1, -1, -1, 0, 0>}}> : () -> ()
