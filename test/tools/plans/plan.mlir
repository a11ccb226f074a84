// The plan says all that the IR says.
// RUN: occlc compile %s -o - | FileCheck %s
// RUN: occlc compile %algorithms/allgather/ring.coll -D ranks=2 | FileCheck %s --check-prefix=OFFSETS

// OFFSETS: "inPlaceOffset": 0
// OFFSETS: "inPlaceOffset": 1

// CHECK: "name": "example"
// CHECK: "collective": "reduce"
// CHECK: "partChunks": 2
// CHECK: "root": 1
// CHECK: "outOfPlace": true
// CHECK: "inPlace": false
// CHECK: "uniformChunks": false
// CHECK: "protocol": "LL"
// CHECK: "depth": 3
// CHECK: "minBytes": 7
// CHECK: "maxBytes": 9
// CHECK: [0, 5, [1]]
inst.program "example" implements "reduce" ranks 2 attributes {input_chunks = array<i32: 2, 2>,
    output_chunks = array<i32: 0, 2>, scratch_chunks = array<i32: 0, 2>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 2 : i32, root = 1 : i32, in_place = false, protocol = "ll", depth = 3 : i32, min_bytes = 7 : i64,
    max_bytes = 9 : i64, source_hash = "0123456789abcdef", connections = array<i32: 0, 5, 1, 1>} {
  // CHECK: {"op": "send", "src": {{\[\[}}"input", 0]], "dst": {{\[\[}}"connection", 0]], "count": 1, "at"
  // CHECK: {"op": "send", "src": {{\[\[}}"input", 1]], "dst": {{\[\[}}"connection", 0]], "count": 1, "extent": 1, "at"
  inst.rank 0 {
    %0 = inst.send input[0] into connection(0) block 0
    %1 = inst.send input[1] into connection(0) extent 1 block 0
  }
  // CHECK: {"op": "recv", "src": {{\[\[}}"connection", 0]], "dst": {{\[\[}}"scratch", 0]], "count": 1, "at"
  // CHECK: {"op": "recv", "src": {{\[\[}}"connection", 0]], "dst": {{\[\[}}"scratch", 1]], "count": 1, "extent": 1, "at"
  // CHECK: {"op": "reduce", "src": {{\[\[}}"scratch", 0], ["input", 0]], "dst": {{\[\[}}"output", 0]], "count": 1, "final": true, "after": {{\[\[}}0, 0]]
  // CHECK: {"op": "reduce", "src": {{\[\[}}"input", 1], ["scratch", 1]], "dst": {{\[\[}}"output", 1]], "count": 1, "extent": 1, "final": true, "after": {{\[\[}}0, 1]]
  inst.rank 1 {
    %0 = inst.recv connection(0) into scratch[0] block 0
    %1 = inst.recv connection(0) into scratch[1] extent 1 block 0
    %2 = inst.reduce scratch[0], input[0] into output[0] block 1 final after %0
    %3 = inst.reduce input[1], scratch[1] into output[1] extent 1 block 1 final after %1
  }
}
