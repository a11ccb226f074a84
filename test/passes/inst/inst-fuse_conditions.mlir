// RUN: occl-opt %s -split-input-file -inst-fuse=reassociate | FileCheck %s
// Of each condition of the rules, a program that only it tells from one that may be fused.

// A message is no place of the rank's memory: its number says nothing of what the target overlaps.
// CHECK-LABEL: "message"
inst.program "message" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 4 : i32, in_place = true} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1) count 2
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into output[3]
    // CHECK-NEXT: inst.recv transfer(1) into output[0] count 2
    // CHECK-NEXT: }
    %0 = inst.recv transfer(0) into output[3]
    %1 = inst.recv transfer(1) into scratch[0] count 2
    %2 = inst.copy scratch[0] into output[0] count 2
  }
}

// -----

// A sum may go to the place of one of its operands, also if somebody read that before.
// CHECK-LABEL: "onto_operand"
inst.program "onto_operand" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.send output[0] into transfer(0)
    // CHECK-NEXT: inst.reduce input[0], output[0] into output[0]
    // CHECK-NEXT: }
    %0 = inst.send output[0] into transfer(0)
    %1 = inst.reduce input[0], output[0] into scratch[0]
    %2 = inst.copy scratch[0] into output[0]
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

// Another reader that begins before what is copied reads more than that.
// CHECK-LABEL: "reads_more"
inst.program "reads_more" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.recv transfer(0) into scratch[1]
    // CHECK-NEXT: inst.recv transfer(1) into scratch[0]
    // CHECK-NEXT: inst.copy scratch[1] into output[1]
    // CHECK-NEXT: inst.send scratch[0] into transfer(2) count 2
    %0 = inst.recv transfer(0) into scratch[1]
    %1 = inst.recv transfer(1) into scratch[0]
    %2 = inst.copy scratch[1] into output[1]
    %3 = inst.send scratch[0] into transfer(2) count 2
  }
  inst.rank 1 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.recv transfer(2) into output[0] count 2
  }
}

// -----

// Another reader that reads something else as well is redirected for what was copied only.
// CHECK-LABEL: "reads_two"
inst.program "reads_two" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.reduce input[0], input[1] into output[1]
    // CHECK-NEXT: inst.reduce input[2], input[3] into scratch[0]
    // CHECK-NEXT: inst.send scratch[0] into transfer(0)
    // CHECK-NEXT: inst.reduce scratch[0], output[1] into output[0]
    %0 = inst.reduce input[0], input[1] into scratch[1]
    %1 = inst.copy scratch[1] into output[1]
    %2 = inst.reduce input[2], input[3] into scratch[0]
    %3 = inst.send scratch[0] into transfer(0)
    %4 = inst.reduce scratch[0], scratch[1] into output[0]
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
  }
}

// -----

// What is overwritten by a message is dead before.
// CHECK-LABEL: "dead"
inst.program "dead" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 4 : i32, in_place = true} {
  inst.rank 0 {
    %0 = inst.send input[1] into transfer(0)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into output[0]
    // CHECK-NEXT: }
    %0 = inst.copy input[1] into output[0]
    %1 = inst.recv transfer(0) into output[0]
  }
}

// -----

// What passes a message on besides storing it cannot be a part of the reduction that reads it.
// CHECK-LABEL: "passes_on"
inst.program "passes_on" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.recv transfer(1) into output[0]
  }
  inst.rank 1 {
    // CHECK: inst.recv_copy_send transfer(0) into scratch[0], transfer(1)
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[0]
    %0 = inst.recv_copy_send transfer(0) into scratch[0], transfer(1)
    %1 = inst.reduce scratch[0], input[0] into output[0]
  }
}

// -----

// A message that comes before the connection's next one may be received by its reduction.
// CHECK-LABEL: "before_next"
inst.program "before_next" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.recv_reduce_copy input[0], transfer(0) into output[0]
    // CHECK-NEXT: inst.recv transfer(1) into output[1]
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.reduce input[0], scratch[0] into output[0]
    %2 = inst.recv transfer(1) into output[1]
  }
}

// -----

// A reduction that reads a part of what arrives, and what lies beside it, does not receive it.
// CHECK-LABEL: "shifted"
inst.program "shifted" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>, output_chunks = array<i32: 4, 4>,
    scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1) count 2
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into scratch[2]
    // CHECK-NEXT: inst.recv transfer(1) into scratch[0] count 2
    // CHECK-NEXT: inst.reduce input[0], scratch[1] into output[0] count 2
    %0 = inst.recv transfer(0) into scratch[2]
    %1 = inst.recv transfer(1) into scratch[0] count 2
    %2 = inst.reduce input[0], scratch[1] into output[0] count 2
  }
}
