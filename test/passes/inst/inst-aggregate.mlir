// RUN: occl-opt %s -split-input-file -inst-aggregate | FileCheck %s
// RUN: occl-opt %s -split-input-file -inst-aggregate=local=false | FileCheck %s --check-prefix=MESSAGES

// Neighbouring chunks travel in one message, through all that pass them on.
// CHECK-LABEL: "path"
inst.program "path" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0) count 3{{$}}
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1) extent 1
    %2 = inst.send input[2] into transfer(2) extent 2
  }
  inst.rank 1 {
    // CHECK: inst.recv_reduce_copy_send input[0], transfer(0) into output[0], transfer(3) count 3{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv_reduce_copy_send input[0], transfer(0) into output[0], transfer(3)
    %1 = inst.recv_reduce_copy_send input[1], transfer(1) into output[1], transfer(4) extent 1
    %2 = inst.recv_reduce_copy_send input[2], transfer(2) into output[2], transfer(5) extent 2
  }
  inst.rank 2 {
    // CHECK: inst.recv transfer(3) into output[1] count 3{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv transfer(3) into output[1]
    %1 = inst.recv transfer(4) into output[2] extent 1
    %2 = inst.recv transfer(5) into output[3] extent 2
  }
}

// -----

// Not if the ranges are apart at one end, or extents do not follow each other, or only one is final.
// CHECK-LABEL: "apart"
inst.program "apart" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK-COUNT-6: inst.send
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1) extent 1
    %2 = inst.send scratch[0] into transfer(2) extent 1
    %3 = inst.send scratch[1] into transfer(3) extent 3
    %4 = inst.send input[2] into transfer(4) extent 2
    %5 = inst.send input[3] into transfer(5) extent 3
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[2] extent 1
    %2 = inst.recv transfer(2) into scratch[0] extent 1
    %3 = inst.recv transfer(3) into scratch[1] extent 3
    %4 = inst.recv_reduce_copy input[2], transfer(4) into scratch[2] extent 2
    %5 = inst.recv_reduce_copy input[3], transfer(5) into scratch[3] extent 3 final
  }
}

// -----

// Not if the second waits for the first.
// CHECK-LABEL: "dependent"
inst.program "dependent" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK-COUNT-2: inst.send
    %0 = inst.send scratch[0] into transfer(0)
    %1 = inst.recv transfer(2) into scratch[1]
    %2 = inst.send scratch[1] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.send output[0] into transfer(2)
    %2 = inst.recv transfer(1) into output[1]
  }
}

// -----

// Local copies and reductions are joined, too.
// CHECK-LABEL: "local"
inst.program "local" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.copy input[0] into output[1] count 2{{$}}
    // CHECK-NEXT: inst.reduce input[0], input[2] into scratch[0] count 2{{$}}
    // CHECK-NEXT: }
    %0 = inst.copy input[0] into output[1]
    %1 = inst.reduce input[0], input[2] into scratch[0]
    %2 = inst.copy input[1] into output[2]
    %3 = inst.reduce input[1], input[3] into scratch[1]
  }
}

// -----

// Not past an instruction that reads what the second overwrites.
// CHECK-LABEL: "between"
inst.program "between" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  // CHECK: inst.rank 1
  // CHECK-NEXT: inst.recv transfer(0) into output[0]{{$}}
  // CHECK-NEXT: inst.copy output[1] into output[3]{{$}}
  // CHECK-NEXT: inst.recv transfer(1) into output[1]{{$}}
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.copy output[1] into output[3]
    %2 = inst.recv transfer(1) into output[1]
  }
}

// -----

// Not if the second reduces its messages in another order.
// CHECK-LABEL: "reduces"
inst.program "reduces" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK-COUNT-2: inst.send
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    %0 = inst.send input[0] into transfer(2)
    %1 = inst.send input[1] into transfer(3)
  }
  inst.rank 2 {
    // CHECK: inst.recv_reduce_copy transfer(0), transfer(2) into output[0]{{$}}
    // CHECK-NEXT: inst.recv_reduce_copy transfer(3), transfer(1) into output[1]{{$}}
    %0 = inst.recv_reduce_copy transfer(0), transfer(2) into output[0]
    %1 = inst.recv_reduce_copy transfer(3), transfer(1) into output[1]
  }
}

// -----

// Others may stand between them, also along the way.
// CHECK-LABEL: "interleaved"
inst.program "interleaved" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.send input[0] into transfer(0) count 2{{$}}
    // CHECK-NEXT: inst.send input[2] into transfer(1) count 2{{$}}
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[2] into transfer(1)
    %2 = inst.send input[1] into transfer(2)
    %3 = inst.send input[3] into transfer(3)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_copy_send transfer(0) into output[2], transfer(4) count 2{{$}}
    // CHECK-NEXT: inst.recv_copy_send transfer(1) into output[0], transfer(5) count 2{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv_copy_send transfer(0) into output[2], transfer(4)
    %1 = inst.recv_copy_send transfer(1) into output[0], transfer(5)
    %2 = inst.recv_copy_send transfer(2) into output[3], transfer(6)
    %3 = inst.recv_copy_send transfer(3) into output[1], transfer(7)
  }
  inst.rank 2 {
    // CHECK: inst.rank 2
    // CHECK-NEXT: inst.recv transfer(4) into output[2] count 2{{$}}
    // CHECK-NEXT: inst.recv transfer(5) into output[0] count 2{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv transfer(4) into output[2]
    %1 = inst.recv transfer(5) into output[0]
    %2 = inst.recv transfer(6) into output[3]
    %3 = inst.recv transfer(7) into output[1]
  }
}

// -----

// Not past an instruction that reads what the second receives over, wherever it stands on the way; then nothing is merged.
// CHECK-LABEL: "interleaved_read"
inst.program "interleaved_read" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK-COUNT-3: inst.send
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[2] into transfer(1)
    %2 = inst.send input[1] into transfer(2)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into output[0]{{$}}
    // CHECK-NEXT: inst.recv_reduce_copy output[1], transfer(1) into output[3]{{$}}
    // CHECK-NEXT: inst.recv transfer(2) into output[1]{{$}}
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv_reduce_copy output[1], transfer(1) into output[3]
    %2 = inst.recv transfer(2) into output[1]
  }
}

// -----

// What the source groups apart stays apart.
// CHECK-LABEL: "groups"
inst.program "groups" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.send input[0] into transfer(0) count 2 group 1{{$}}
    // CHECK-NEXT: inst.send input[2] into transfer(2) group 2{{$}}
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0) group 1
    %1 = inst.send input[1] into transfer(1) group 1
    %2 = inst.send input[2] into transfer(2) group 2
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0] group 1
    %1 = inst.recv transfer(1) into output[1] group 1
    %2 = inst.recv transfer(2) into output[2] group 2
  }
}

// -----

// A message that became part of one is not part of another that it would continue as well.
// CHECK-LABEL: "taken"
inst.program "taken" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.send input[0] into transfer(0) count 2{{$}}
    // CHECK-NEXT: inst.send input[0] into transfer(1){{$}}
    // CHECK-NEXT: }
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[0] into transfer(1)
    %2 = inst.send input[1] into transfer(2)
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[2]
    %1 = inst.recv transfer(1) into output[2]
    %2 = inst.recv transfer(2) into output[3]
  }
}

// -----

// Local copies of neighbours stay apart if only messages are to be joined.
// CHECK-LABEL: "messages"
// MESSAGES-LABEL: "messages"
inst.program "messages" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 0, 0>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.send input[0] into transfer(0) count 2
    // CHECK-NEXT: inst.copy input[0] into output[0] count 2
    // CHECK-NEXT: }
    // MESSAGES: inst.send input[0] into transfer(0) count 2
    // MESSAGES-NEXT: inst.copy input[0] into output[0]{{$}}
    // MESSAGES-NEXT: inst.copy input[1] into output[1] extent 1
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1) extent 1
    %2 = inst.copy input[0] into output[0]
    %3 = inst.copy input[1] into output[1] extent 1
  }
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1] extent 1
  }
}
