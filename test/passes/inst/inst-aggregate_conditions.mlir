// RUN: occl-opt %s -split-input-file -inst-aggregate | FileCheck %s
// Of each condition, a program that only it tells from one whose messages may be joined.

// What is sent was computed before both: it may be sent at once.
// CHECK-LABEL: "computed_before"
inst.program "computed_before" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send scratch[0] into transfer(0) count 2
    // CHECK-NEXT: }
    %0 = inst.copy input[3] into scratch[0]
    %1 = inst.copy input[1] into scratch[1]
    %2 = inst.send scratch[0] into transfer(0)
    %3 = inst.send scratch[1] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into output[0] count 2
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
  }
}

// -----

// Messages that are reduced in another order stay apart.
// CHECK-LABEL: "other_order"
inst.program "other_order" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0){{$}}
    // CHECK-NEXT: inst.send input[1] into transfer(1){{$}}
    // CHECK-NEXT: inst.send input[2] into transfer(2){{$}}
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[2] into transfer(2)
  }
  inst.rank 1 {
    // CHECK: inst.recv_reduce_copy transfer(0), input[0] into output[0]{{$}}
    // CHECK-NEXT: inst.recv_reduce_copy input[1], transfer(1) into output[1]{{$}}
    // CHECK-NEXT: inst.recv_reduce_copy transfer(2), input[2] into output[2]{{$}}
    %0 = inst.recv_reduce_copy transfer(0), input[0] into output[0]
    %1 = inst.recv_reduce_copy input[1], transfer(1) into output[1]
    %2 = inst.recv_reduce_copy transfer(2), input[2] into output[2]
  }
}

// -----

// Messages that are passed on by different channels stay apart.
// CHECK-LABEL: "other_channel"
inst.program "other_channel" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0){{$}}
    // CHECK-NEXT: inst.send input[1] into transfer(1){{$}}
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv_copy_send transfer(0) into transfer(2)
    %1 = inst.recv_copy_send transfer(1) into transfer(3) channel 1
  }
  inst.rank 2 {
    %0 = inst.recv transfer(2) into output[0]
    %1 = inst.recv transfer(3) channel 1 into output[1]
  }
}

// -----

// Instructions for which different thread blocks are asked stay apart.
// CHECK-LABEL: "other_block"
inst.program "other_block" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into output[0] block 0{{$}}
    // CHECK-NEXT: inst.copy input[1] into output[1] block 1{{$}}
    %0 = inst.copy input[0] into output[0] block 0
    %1 = inst.copy input[1] into output[1] block 1
  }
  inst.rank 1 {
  }
}

// -----

// A message and a place of the memory do not continue each other, on either side.
// CHECK-LABEL: "one_more_message"
inst.program "one_more_message" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0){{$}}
    // CHECK-NEXT: inst.send input[1] into transfer(1){{$}}
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[3] into transfer(2) channel 1
  }
  inst.rank 1 {
    %0 = inst.recv_reduce_copy transfer(0), input[1] into output[0]
    %1 = inst.recv_reduce_copy transfer(1), transfer(2) channel 1 into output[1]
  }
}

// -----

// CHECK-LABEL: "one_message_less"
inst.program "one_message_less" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0){{$}}
    // CHECK-NEXT: inst.send input[1] into transfer(1){{$}}
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[3] into transfer(2) channel 1
  }
  inst.rank 1 {
    %0 = inst.recv_reduce_copy transfer(0), transfer(2) channel 1 into output[0]
    %1 = inst.recv_reduce_copy transfer(1), input[1] into output[1]
  }
}

// -----

// What rank 2 reduces cannot be joined at first, as rank 1 receives between its sends; once it receives both before, it can.
// CHECK-LABEL: "tried_again"
inst.program "tried_again" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0) count 2
    // CHECK-NEXT: inst.send input[2] into transfer(2) count 2
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[2] into transfer(2)
    %3 = inst.send input[3] into transfer(3)
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(2) into scratch[0] count 2
    // CHECK-NEXT: inst.send scratch[0] into transfer(4) count 2
    %0 = inst.recv transfer(2) into scratch[0]
    %1 = inst.send scratch[0] into transfer(4)
    %2 = inst.recv transfer(3) into scratch[1]
    %3 = inst.send scratch[1] into transfer(5)
  }
  inst.rank 2 {
    // CHECK: inst.recv_reduce_copy transfer(0), transfer(4) into output[0] count 2
    %0 = inst.recv_reduce_copy transfer(0), transfer(4) into output[0]
    %1 = inst.recv_reduce_copy transfer(1), transfer(5) into output[1]
  }
}
