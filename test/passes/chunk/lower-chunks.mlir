// RUN: occl-opt %s -split-input-file -lower-chunks | FileCheck %s

// A copy to another rank is a send and a receive; a local one is a copy; one to its own place is nothing.
// CHECK-LABEL: "copies"
chunk.program "copies" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  // CHECK: inst.rank 0
  // CHECK-NEXT: inst.send input[1] into transfer(0) channel 2 count 2 extent 1{{$}}
  // CHECK-NEXT: inst.copy input[1] into output[1] count 2 extent 1{{$}}
  // CHECK-NEXT: }
  // CHECK: inst.rank 1
  // CHECK-NEXT: inst.recv transfer(0) channel 2 into output[1] count 2 extent 1
  // CHECK-NEXT: }
  %0 = chunk.read input[0][1] count 2
  %1 = chunk.copy %0 into output[1][1] count 2 channel 2
  %2 = chunk.copy %0 into output[0][1] count 2
  %3 = chunk.copy %2 into output[0][1] count 2
}

// -----

// A reduction receives straight into its instruction, in the order of its operands.
// CHECK-LABEL: "reductions"
chunk.program "reductions" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  // CHECK: inst.rank 0
  // CHECK-NEXT: inst.send input[0] into transfer(0){{$}}
  // CHECK: inst.rank 1
  // CHECK-NEXT: inst.recv_reduce_copy transfer(0), input[0], transfer(1) into output[0] final
  // CHECK-NEXT: inst.reduce input[0], input[1] into output[1]{{$}}
  // CHECK: inst.rank 2
  // CHECK-NEXT: inst.send input[0] into transfer(1){{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[1][0]
  %2 = chunk.read input[2][0]
  %3 = chunk.read input[1][1]
  %4 = chunk.reduce %0, %1, %2 into output[1][0] final
  %5 = chunk.reduce %1, %3 into output[1][1]
}

// -----

// The extent of a value goes with it through scratch; where it changes inside of a range the op is split.
// CHECK-LABEL: "extents"
// CHECK-NOT: uniform_chunks
chunk.program "extents" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  // CHECK: inst.rank 0
  // CHECK-NEXT: inst.copy input[3] into scratch[0] extent 3{{$}}
  // CHECK-NEXT: inst.copy input[1] into scratch[1] count 2 extent 1{{$}}
  // CHECK-NEXT: inst.copy scratch[0] into output[3] extent 3{{$}}
  // CHECK-NEXT: inst.send scratch[0] into transfer(0) extent 3{{$}}
  // CHECK-NEXT: inst.send scratch[1] into transfer(1) count 2 extent 1{{$}}
  // CHECK: inst.rank 1
  // CHECK-NEXT: inst.recv transfer(0) into scratch[1] extent 3{{$}}
  // CHECK-NEXT: inst.recv transfer(1) into scratch[2] count 2 extent 1{{$}}
  %0 = chunk.read input[0][3]
  %1 = chunk.copy %0 into scratch[0][0]
  %2 = chunk.read input[0][1] count 2
  %3 = chunk.copy %2 into scratch[0][1] count 2
  %4 = chunk.copy %1 into output[0][3]
  %5 = chunk.read scratch[0][0] count 3
  %6 = chunk.copy %5 into scratch[1][1] count 3
}

// -----

// A value that ends in a place of another extent needs chunks of one size.
// CHECK-LABEL: "uniform"
// CHECK-SAME: uniform_chunks = true
chunk.program "uniform" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  // CHECK: inst.copy input[0] into output[1]{{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[0][1]
}

// -----

// So does a reduction of values of different extents; both ends of a message name the same.
// CHECK-LABEL: "mixed"
// CHECK-SAME: uniform_chunks = true
chunk.program "mixed" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  // CHECK: inst.recv_reduce_copy input[0], transfer(0) into output[0]{{$}}
  // CHECK: inst.send input[1] into transfer(0){{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[1][1]
  %2 = chunk.reduce %0, %1 into output[0][0]
}

// -----

// In place only, copying input to the output chunk that it is takes nothing.
// CHECK-LABEL: "aliased"
// CHECK: inst.rank 0 {
// CHECK-NEXT: }
chunk.program "aliased" implements "custom" ranks 1 attributes {input_chunks = array<i32: 1>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 1>, out_of_place = false} {
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[0][1]
}

// -----

// An instruction takes one message of a connection: a second operand from the same rank has another channel.
// CHECK-LABEL: "same_rank"
chunk.program "same_rank" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>} {
  // CHECK: inst.send input[0] into transfer(0){{$}}
  // CHECK: inst.send input[1] into transfer(1) channel 1{{$}}
  // CHECK: inst.recv_reduce_copy transfer(0), transfer(1) channel 1 into output[0]{{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.read input[0][1]
  %2 = chunk.reduce %0, %1 into output[1][0]
}

// -----

// If it may run out of place, too, the copy is needed there.
// CHECK-LABEL: "both_modes"
// CHECK: inst.copy input[0] into output[1]
chunk.program "both_modes" implements "custom" ranks 1 attributes {input_chunks = array<i32: 1>, output_chunks = array<i32: 2>,
    scratch_chunks = array<i32: 0>, in_place_offsets = array<i32: 1>} {
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[0][1]
}

// -----

// Blocks and groups asked for go to the sender and the receiver; a local op has one block.
// CHECK-LABEL: "hints"
chunk.program "hints" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    hints = array<i32: 1, 5, 2, 3, 1, -1, 4, -1>} {
  // CHECK: inst.send input[0] into transfer(0) block 2 group 5{{$}}
  // CHECK: inst.copy input[1] into output[1] block 4{{$}}
  // CHECK: inst.recv transfer(0) into output[0] block 3 group 5{{$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[1][0] hint 0
  %2 = chunk.read input[0][1]
  %3 = chunk.copy %2 into output[0][1] hint 1
}

// -----

// What stays on its rank may be asked of one thread block, as its sender or as its receiver or as both.
// CHECK-LABEL: "local_blocks"
chunk.program "local_blocks" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>, output_chunks = array<i32: 4>,
    scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>, part_chunks = 1 : i32, in_place = false,
    hints = array<i32: 1, -1, -1, 2, 1, -1, 3, -1, 1, -1, 4, 4>} {
  // CHECK: inst.copy input[0] into output[0] block 2
  // CHECK-NEXT: inst.copy input[0] into output[1] block 3
  // CHECK-NEXT: inst.copy input[0] into output[2] block 4
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into output[0][0] hint 0
  %2 = chunk.copy %0 into output[0][1] hint 1
  %3 = chunk.copy %0 into output[0][2] hint 2
}

// -----

// A range whose extents do not follow each other is cut, also if they go on behind.
// CHECK-LABEL: "there_and_back"
chunk.program "there_and_back" implements "custom" ranks 1 attributes {input_chunks = array<i32: 2>, output_chunks = array<i32: 4>,
    scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>, part_chunks = 2 : i32, in_place = false} {
  // CHECK: inst.copy scratch[0] into output[0]{{( extent 0)?$}}
  // CHECK-NEXT: inst.copy scratch[1] into output[1]{{( extent 0)?$}}
  // CHECK-NEXT: inst.copy scratch[2] into output[2]{{( extent 0)?$}}
  %0 = chunk.read input[0][0]
  %1 = chunk.copy %0 into scratch[0][0]
  %2 = chunk.copy %0 into scratch[0][1]
  %3 = chunk.copy %0 into scratch[0][2]
  %4 = chunk.read scratch[0][0] count 3
  %5 = chunk.copy %4 into output[0][0] count 3
}
