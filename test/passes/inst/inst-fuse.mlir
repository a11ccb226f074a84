// RUN: occl-opt %s -split-input-file -inst-fuse=reassociate | FileCheck %s
// RUN: occl-opt %s -split-input-file -inst-fuse | FileCheck %s --check-prefix=EXACT
// RUN: occl-opt %s -split-input-file -inst-fuse=max-fan-out=1 | FileCheck %s --check-prefix=NARROW
// RUN: occl-opt %s -split-input-file -inst-fuse=fold-arrivals=false | FileCheck %s --check-prefix=STORED

// Receiving and passing on is one instruction; what nobody reads is not stored, and its scratch goes.
// CHECK-LABEL: "relay"
// CHECK-SAME: scratch_chunks = array<i32: 0, 0, 0>
inst.program "relay" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_copy_send transfer(0) into transfer(1){{$}}
    // CHECK-NEXT: }
    %0 = inst.recv transfer(0) into scratch[3]
    %1 = inst.send scratch[3] into transfer(1)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[0]
  }
}

// -----

// What is output stays stored; local and remote destination need not agree; several sends make a list.
// CHECK-LABEL: "list"
inst.program "list" implements "custom" ranks 4 attributes {input_chunks = array<i32: 4, 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_reduce_copy_send input[0], transfer(0) into output[2], transfer(1), transfer(2){{$}}
    // CHECK-NEXT: }
    %0 = inst.recv_reduce_copy input[0], transfer(0) into output[2]
    %1 = inst.send output[2] into transfer(1)
    %2 = inst.send output[2] into transfer(2)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[0]
  }
  inst.rank 3 {
    %0 = inst.recv transfer(2) into output[1]
  }
}

// -----

// A store that is overwritten unread is dropped.
// CHECK-LABEL: "overwritten"
inst.program "overwritten" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.recv transfer(1) into output[0]
    %2 = inst.send output[0] into transfer(2)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_reduce_send input[0], transfer(0) into transfer(1){{$}}
    %0 = inst.recv_reduce_copy input[0], transfer(0) into output[0]
    %1 = inst.send output[0] into transfer(1)
    %2 = inst.recv transfer(2) into output[0]
  }
}

// -----

// One that is overwritten only in part is kept.
// CHECK-LABEL: "partly"
inst.program "partly" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
    %1 = inst.recv transfer(1) into output[0] count 2
    %2 = inst.send output[0] into transfer(2)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_reduce_copy_send input[0], transfer(0) into output[0], transfer(1) count 2
    %0 = inst.recv_reduce_copy input[0], transfer(0) into output[0] count 2
    %1 = inst.send output[0] into transfer(1) count 2
    %2 = inst.recv transfer(2) into output[0]
  }
}

// -----

// Only exactly what arrived is passed on: not a part, not more, not what was changed in between.
// CHECK-LABEL: "inexact"
inst.program "inexact" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
    %1 = inst.send input[2] into transfer(1)
    %2 = inst.send input[3] into transfer(2)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0)
    // CHECK-NEXT: inst.send output[1]
    // CHECK-NEXT: inst.recv transfer(1)
    // CHECK-NEXT: inst.send output[1] into transfer(4) count 2
    // CHECK-NEXT: inst.recv transfer(2)
    // CHECK-NEXT: inst.reduce
    // CHECK-NEXT: inst.send output[3]
    %0 = inst.recv transfer(0) into output[0] count 2
    %1 = inst.send output[1] into transfer(3)
    %2 = inst.recv transfer(1) into output[2]
    %3 = inst.send output[1] into transfer(4) count 2
    %4 = inst.recv transfer(2) into output[3]
    %5 = inst.reduce input[1], input[0] into output[3]
    %6 = inst.send output[3] into transfer(5)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(3) into output[1]
    %1 = inst.recv transfer(4) into output[1] count 2
    %2 = inst.recv transfer(5) into output[3]
  }
}

// -----

// A send does not overtake another of its connection.
// CHECK-LABEL: "overtaking"
inst.program "overtaking" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into output[0]
    // CHECK-NEXT: inst.send input[1] into transfer(1)
    // CHECK-NEXT: inst.send output[0] into transfer(2)
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send output[0] into transfer(2)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[1]
    %1 = inst.recv transfer(2) into output[0]
  }
}

// -----

// A result is stored where a copy would take it, over several copies; the copies go.
// CHECK-LABEL: "forwarded"
// CHECK-SAME: scratch_chunks = array<i32: 0, 0>
inst.program "forwarded" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_reduce_copy input[0], transfer(0) into output[3]{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv_reduce_copy input[0], transfer(0) into scratch[0]
    %1 = inst.copy scratch[0] into scratch[1]
    %2 = inst.copy scratch[1] into output[3]
  }
}

// -----

// Not where somebody uses the target in between.
// CHECK-LABEL: "kept"
inst.program "kept" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.reduce input[0], input[1] into output[0]
    // CHECK-NEXT: inst.reduce output[0], input[3] into output[1]
    // CHECK-NEXT: inst.reduce input[0], input[2] into scratch[0]
    // CHECK-NEXT: inst.reduce output[2]
    // CHECK-NEXT: inst.copy scratch[0] into output[2]
    %0 = inst.reduce input[0], input[1] into scratch[0]
    %1 = inst.copy scratch[0] into output[0]
    %2 = inst.reduce scratch[0], input[3] into output[1]
    %3 = inst.reduce input[0], input[2] into scratch[1]
    %4 = inst.reduce output[2], input[2] into output[3]
    %5 = inst.copy scratch[1] into output[2]
  }
}

// -----

// What arrives for one reduction goes straight into it.
// CHECK-LABEL: "absorbed"
// CHECK-SAME: scratch_chunks = array<i32: 0, 0, 0>
inst.program "absorbed" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    %0 = inst.send input[0] into transfer(1)
  }
  inst.rank 2 {
    // CHECK: inst.rank 2
    // CHECK-NEXT: inst.recv_reduce_copy transfer(0), transfer(1), input[0] into output[0]{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv transfer(1) into scratch[1]
    %1 = inst.recv transfer(0) into scratch[0]
    %2 = inst.reduce scratch[0], scratch[1], input[0] into output[0]
  }
}

// -----

// Not past a later message of the connection, and not what two instructions read.
// CHECK-LABEL: "unabsorbed"
inst.program "unabsorbed" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into scratch[0]
    // CHECK-NEXT: inst.recv transfer(1)
    // CHECK-NEXT: inst.reduce scratch[0]
    // CHECK-NEXT: inst.reduce scratch[1]
    // CHECK-NEXT: inst.reduce scratch[1]
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.recv transfer(1) into scratch[1]
    %2 = inst.reduce scratch[0], input[0] into output[0]
    %3 = inst.reduce scratch[1], input[0] into output[1]
    %4 = inst.reduce scratch[1], input[1] into output[2]
  }
}

// -----

// Not what is overwritten in part before the reduction reads it.
// CHECK-LABEL: "partly_overwritten"
inst.program "partly_overwritten" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
    %1 = inst.send input[2] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into scratch[0] count 2
    // CHECK-NEXT: inst.recv transfer(1) into scratch[1]
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[0] count 2
    %0 = inst.recv transfer(0) into scratch[0] count 2
    %1 = inst.recv transfer(1) into scratch[1]
    %2 = inst.reduce scratch[0], input[0] into output[0] count 2
    // CHECK-NEXT: inst.copy input[0] into scratch[2] count 2
    // CHECK-NEXT: inst.copy input[3] into scratch[3]
    // CHECK-NEXT: inst.reduce scratch[2], input[2] into output[2] count 2
    %3 = inst.copy input[0] into scratch[2] count 2
    %4 = inst.copy input[3] into scratch[3]
    %5 = inst.reduce scratch[2], input[2] into output[2] count 2
  }
}

// -----

// With chunks of one size an instruction may name another extent than its producer: they stay apart, so that both ends
// of each message still agree.
// CHECK-LABEL: "extents"
inst.program "extents" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false, uniform_chunks = true} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.recv transfer(1) into output[1] extent 1
  }
  // CHECK: inst.rank 1
  // CHECK-NEXT: inst.recv transfer(0) into output[1]
  // CHECK-NEXT: inst.send output[1] into transfer(1) extent 1
  inst.rank 1 {
    %0 = inst.recv transfer(0) into output[1]
    %1 = inst.send output[1] into transfer(1) extent 1
  }
}

// -----

// An instruction that receives and sends needs room and a message at once. Rank 0 receives only when it has sent everything, so
// that with one message in flight a message must wait in memory: what is stuck is kept apart, the rest is fused.
// CHECK-LABEL: "shallow"
inst.program "shallow" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, depth = 1 : i32} {
  inst.rank 0 {
    %0 = inst.send scratch[0] into transfer(0)
    %1 = inst.send scratch[1] into transfer(1)
    %2 = inst.send scratch[2] into transfer(2)
    %3 = inst.recv transfer(3) into scratch[2]
    %4 = inst.recv transfer(4) into scratch[1]
    %5 = inst.recv transfer(5) into scratch[0]
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_copy_send transfer(0) into output[0], transfer(3)
    // CHECK-NEXT: inst.recv transfer(1)
    // CHECK-NEXT: inst.recv transfer(2)
    // CHECK-NEXT: inst.send output[1]
    // CHECK-NEXT: inst.send output[2]
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
    %2 = inst.recv transfer(2) into output[2]
    %3 = inst.send output[0] into transfer(3)
    %4 = inst.send output[1] into transfer(4)
    %5 = inst.send output[2] into transfer(5)
  }
}

// -----

// With two in flight all can be fused.
// CHECK-LABEL: "deep"
inst.program "deep" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, depth = 2 : i32} {
  inst.rank 0 {
    %0 = inst.send scratch[0] into transfer(0)
    %1 = inst.send scratch[1] into transfer(1)
    %2 = inst.send scratch[2] into transfer(2)
    %3 = inst.recv transfer(3) into scratch[2]
    %4 = inst.recv transfer(4) into scratch[1]
    %5 = inst.recv transfer(5) into scratch[0]
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_copy_send transfer(0) into output[0], transfer(3)
    // CHECK-NEXT: inst.recv_copy_send transfer(1) into output[1], transfer(4)
    // CHECK-NEXT: inst.recv_copy_send transfer(2) into output[2], transfer(5)
    %0 = inst.recv transfer(0) into output[0]
    %1 = inst.recv transfer(1) into output[1]
    %2 = inst.recv transfer(2) into output[2]
    %3 = inst.send output[0] into transfer(3)
    %4 = inst.send output[1] into transfer(4)
    %5 = inst.send output[2] into transfer(5)
  }
}

// -----

// Without the copy, receiving would wait for the send of output[3], which waits for rank 0, which waits until this is received.
// That is no transfer's fault: nothing is fused.
// CHECK-LABEL: "unfused"
inst.program "unfused" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false, depth = 1 : i32} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send scratch[0] into transfer(1)
    %2 = inst.recv transfer(2) into scratch[0]
    %3 = inst.recv transfer(3) into output[1]
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK: inst.recv transfer(0) into scratch[0]
    // CHECK-NEXT: inst.copy scratch[0] into output[3]
    %0 = inst.send input[0] into transfer(2)
    %1 = inst.send output[3] into transfer(3)
    %2 = inst.recv transfer(0) into scratch[0]
    %3 = inst.copy scratch[0] into output[3]
    %4 = inst.recv transfer(1) into output[2]
  }
}

// -----

// A result in output is there at the end, whoever copies it.
// CHECK-LABEL: "observable"
inst.program "observable" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.reduce input[0], input[1] into output[0]{{$}}
    // CHECK-NEXT: inst.copy output[0] into output[3]{{$}}
    %0 = inst.reduce input[0], input[1] into output[0]
    %1 = inst.copy output[0] into output[3]
  }
}

// -----

// A target that overlaps a source in part is no target.
// CHECK-LABEL: "overlapping"
inst.program "overlapping" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.reduce output[0], input[0] into scratch[0] count 2{{$}}
    // CHECK-NEXT: inst.copy scratch[0] into output[1] count 2{{$}}
    %0 = inst.reduce output[0], input[0] into scratch[0] count 2
    %1 = inst.copy scratch[0] into output[1] count 2
  }
}

// -----

// What two sources of a reduction share is kept in memory.
// CHECK-LABEL: "shared"
inst.program "shared" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into scratch[0] count 2{{$}}
    // CHECK-NEXT: inst.copy input[0] into scratch[2]{{$}}
    // CHECK-NEXT: inst.reduce scratch[1], scratch[0] into output[0] count 2{{$}}
    %0 = inst.recv transfer(0) into scratch[0] count 2
    %1 = inst.copy input[0] into scratch[2]
    %2 = inst.reduce scratch[1], scratch[0] into output[0] count 2
  }
}

// -----

// Only what would overtake another message is left apart: neither receiving nor sending; the rest is fused.
// CHECK-LABEL: "rest"
inst.program "rest" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[2] into transfer(2)
    %3 = inst.recv transfer(3) into output[0]
    %4 = inst.recv transfer(4) into output[1]
    %5 = inst.recv transfer(5) into output[2]
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into scratch[0]
    // CHECK-NEXT: inst.recv transfer(1) into output[1]
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[0]
    // CHECK-NEXT: inst.send input[3] into transfer(3)
    // CHECK-NEXT: inst.send output[1] into transfer(4)
    // CHECK-NEXT: inst.recv_copy_send transfer(2) into output[2], transfer(5)
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.recv transfer(1) into output[1]
    %2 = inst.reduce scratch[0], input[0] into output[0]
    %3 = inst.send input[3] into transfer(3)
    %4 = inst.send output[1] into transfer(4)
    %5 = inst.recv transfer(2) into output[2]
    %6 = inst.send output[2] into transfer(5)
  }
}

// -----

// In place, output has content before anything is stored: what is sent is not what was received, though as long.
// CHECK-LABEL: "initial"
inst.program "initial" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
    %1 = inst.recv transfer(1) into output[2] count 2
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into output[0] count 2{{$}}
    // CHECK-NEXT: inst.send output[1] into transfer(1) count 2{{$}}
    %0 = inst.recv transfer(0) into output[0] count 2
    %1 = inst.send output[1] into transfer(1) count 2
  }
}

// -----

// What was overwritten in part is not what was received.
// CHECK-LABEL: "stale"
inst.program "stale" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
    %1 = inst.recv transfer(1) into output[0] count 2
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into output[0] count 2{{$}}
    // CHECK-NEXT: inst.copy input[0] into output[1]{{$}}
    // CHECK-NEXT: inst.send output[0] into transfer(1) count 2{{$}}
    %0 = inst.recv transfer(0) into output[0] count 2
    %1 = inst.copy input[0] into output[1]
    %2 = inst.send output[0] into transfer(1) count 2
  }
}

// -----

// A reduction takes a whole message, of its own extent; the scratch that is needed all the same stays.
// CHECK-LABEL: "unequal"
// CHECK-SAME: scratch_chunks = array<i32: 0, 3>
inst.program "unequal" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 4 : i32, in_place = false, uniform_chunks = true} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
    %1 = inst.send input[2] into transfer(1) extent 2
  }
  inst.rank 1 {
    // CHECK: inst.recv transfer(0) into scratch[0] count 2{{$}}
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[0]{{$}}
    // CHECK-NEXT: inst.recv transfer(1) into scratch[2] extent 2{{$}}
    // CHECK-NEXT: inst.reduce input[1], scratch[2] into output[1] extent 1{{$}}
    %0 = inst.recv transfer(0) into scratch[0] count 2
    %1 = inst.reduce scratch[0], input[0] into output[0]
    %2 = inst.recv transfer(1) into scratch[3] extent 2
    %3 = inst.reduce input[1], scratch[3] into output[1] extent 1
  }
}

// -----

// What asks for different thread blocks stays apart; what asks for none takes the other's.
// CHECK-LABEL: "blocks"
inst.program "blocks" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 8, 8, 8>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.send input[2] into transfer(2)
    %3 = inst.send input[2] into transfer(5)
    %4 = inst.send input[2] into transfer(6)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_copy_send transfer(0) into transfer(3) block 1 group 3{{$}}
    // CHECK-NEXT: inst.recv transfer(1) into scratch[0] block 1{{$}}
    // CHECK-NEXT: inst.send scratch[0] into transfer(4) block 2{{$}}
    // CHECK-NEXT: inst.recv transfer(2) into scratch[1] block 1{{$}}
    // CHECK-NEXT: inst.copy scratch[1] into output[0] block 2{{$}}
    // CHECK-NEXT: inst.recv transfer(5) into scratch[2] block 1{{$}}
    // CHECK-NEXT: inst.reduce scratch[2], input[0] into output[1] block 2{{$}}
    // CHECK-NEXT: inst.recv_reduce_copy transfer(6), input[0] into output[2] block 2{{$}}
    %0 = inst.recv transfer(0) into scratch[3] block 1
    %1 = inst.send scratch[3] into transfer(3) group 3
    %2 = inst.recv transfer(1) into scratch[4] block 1
    %3 = inst.send scratch[4] into transfer(4) block 2
    %4 = inst.recv transfer(2) into scratch[5] block 1
    %5 = inst.copy scratch[5] into output[0] block 2
    %6 = inst.recv transfer(5) into scratch[6] block 1
    %7 = inst.reduce scratch[6], input[0] into output[1] block 2
    %8 = inst.recv transfer(6) into scratch[7] block 2
    %9 = inst.reduce scratch[7], input[0] into output[2]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(3) into output[0]
    %1 = inst.recv transfer(4) into output[1]
  }
}

// -----

// With `reassociate`, a chain of reductions is one, from left to right, and takes messages as they are needed. Else each of them
// rounds what it gives, as the source says; what arrives still goes straight into the reduction that wants it.
// CHECK-LABEL: "chain"
// EXACT-LABEL: "chain"
// CHECK-SAME: scratch_chunks = array<i32: 0, 0, 0>
inst.program "chain" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    %0 = inst.send input[0] into transfer(1)
  }
  inst.rank 2 {
    // CHECK: inst.rank 2
    // CHECK-NEXT: inst.recv_reduce_copy input[0], transfer(0), transfer(1), input[1] into output[0] final{{$}}
    // CHECK-NEXT: }
    // EXACT: inst.rank 2
    // EXACT-NEXT: inst.recv_reduce_copy input[0], transfer(0) into output[0]{{$}}
    // EXACT-NEXT: inst.recv_reduce_copy output[0], transfer(1) into scratch[0]{{$}}
    // EXACT-NEXT: inst.reduce scratch[0], input[1] into output[0] final{{$}}
    // EXACT-NEXT: }
    %0 = inst.recv_reduce_copy input[0], transfer(0) into output[0]
    %1 = inst.recv transfer(1) into scratch[0]
    %2 = inst.reduce output[0], scratch[0] into scratch[1]
    %3 = inst.reduce scratch[1], input[1] into output[0] final
  }
}

// -----

// Not where the result is not the first operand, counts twice, is complete, or is output or read by others.
// CHECK-LABEL: "no_chain"
inst.program "no_chain" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>,
    output_chunks = array<i32: 4>, scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.reduce input[0], input[1] into scratch[0]
    // CHECK-NEXT: inst.reduce input[2], scratch[0] into scratch[1]
    // CHECK-NEXT: inst.reduce scratch[1], scratch[1] into scratch[2] final
    // CHECK-NEXT: inst.reduce scratch[2], input[0] into output[0]
    // CHECK-NEXT: inst.reduce output[0], input[0] into output[1]
    // CHECK-NEXT: inst.reduce output[1], input[0] into output[1] count 2
    // CHECK-NEXT: }
    %0 = inst.reduce input[0], input[1] into scratch[0]
    %1 = inst.reduce input[2], scratch[0] into scratch[1]
    %2 = inst.reduce scratch[1], scratch[1] into scratch[2] final
    %3 = inst.reduce scratch[2], input[0] into output[0]
    %4 = inst.reduce output[0], input[0] into output[1]
    %5 = inst.reduce output[1], input[0] into output[1] count 2
  }
}

// -----

// Not where an operand is overwritten in between, or the second reduction would write to a part of it.
// CHECK-LABEL: "operands"
inst.program "operands" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    // CHECK: inst.rank 0
    // CHECK-NEXT: inst.reduce output[0], input[1] into scratch[0]
    // CHECK-NEXT: inst.reduce input[2], input[3] into output[0]
    // CHECK-NEXT: inst.reduce scratch[0], input[2] into output[1]
    %0 = inst.reduce output[0], input[1] into scratch[0]
    %1 = inst.reduce input[2], input[3] into output[0]
    %2 = inst.reduce scratch[0], input[2] into output[1]
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.reduce output[2], input[0] into scratch[0] count 2
    // CHECK-NEXT: inst.reduce scratch[0], input[2] into output[1] count 2
    %0 = inst.reduce output[2], input[0] into scratch[0] count 2
    %1 = inst.reduce scratch[0], input[2] into output[1] count 2
  }
}

// -----

// A reduction does not take its message past a later one of the connection.
// CHECK-LABEL: "fold_order"
inst.program "fold_order" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_reduce_copy input[0], transfer(0) into scratch[0]{{$}}
    // CHECK-NEXT: inst.recv_reduce_copy scratch[0], transfer(1) into output[0]{{$}}
    %0 = inst.recv_reduce_copy input[0], transfer(0) into scratch[0]
    %1 = inst.recv_reduce_copy scratch[0], transfer(1) into output[0]
  }
}

// -----

// A result that is copied is stored there also if others read it: they read the copy, in whole or in part.
// CHECK-LABEL: "redirected"
// CHECK-SAME: scratch_chunks = array<i32: 0, 0, 0>
inst.program "redirected" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0) count 2
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_copy_send transfer(0) into output[1], transfer(1) count 2{{$}}
    // CHECK-NEXT: inst.reduce output[2], input[0] into output[0]{{$}}
    // CHECK-NEXT: }
    %0 = inst.recv transfer(0) into scratch[0] count 2
    %1 = inst.send scratch[0] into transfer(1) count 2
    %2 = inst.copy scratch[0] into output[1] count 2
    %3 = inst.reduce scratch[1], input[0] into output[0]
  }
  inst.rank 2 {
    %0 = inst.recv transfer(1) into output[0] count 2
  }
}

// -----

// Not if one of them reads more than the copy, or a part that was overwritten since, or the copy is overwritten before, be it in
// part.
// CHECK-LABEL: "not_redirected"
inst.program "not_redirected" implements "custom" ranks 4 attributes {input_chunks = array<i32: 4, 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[0] into transfer(1) count 2
    %2 = inst.send input[0] into transfer(2) count 2
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into scratch[0]{{$}}
    // CHECK-NEXT: inst.copy scratch[0] into output[0]{{$}}
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[2] count 2{{$}}
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.copy scratch[0] into output[0]
    %2 = inst.reduce scratch[0], input[0] into output[2] count 2
  }
  inst.rank 2 {
    // CHECK: inst.rank 2
    // CHECK-NEXT: inst.recv transfer(1) into scratch[0] count 2{{$}}
    // CHECK-NEXT: inst.copy scratch[0] into output[0] count 2{{$}}
    // CHECK-NEXT: inst.copy input[3] into scratch[1]{{$}}
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[2] count 2{{$}}
    %0 = inst.recv transfer(1) into scratch[0] count 2
    %1 = inst.copy scratch[0] into output[0] count 2
    %2 = inst.copy input[3] into scratch[1]
    %3 = inst.reduce scratch[0], input[0] into output[2] count 2
  }
  inst.rank 3 {
    // CHECK: inst.rank 3
    // CHECK-NEXT: inst.recv transfer(2) into scratch[0] count 2{{$}}
    // CHECK-NEXT: inst.copy scratch[0] into output[2] count 2{{$}}
    // CHECK-NEXT: inst.copy input[3] into output[3]{{$}}
    // CHECK-NEXT: inst.reduce scratch[1], input[0] into output[0]{{$}}
    %0 = inst.recv transfer(2) into scratch[0] count 2
    %1 = inst.copy scratch[0] into output[2] count 2
    %2 = inst.copy input[3] into output[3]
    %3 = inst.reduce scratch[1], input[0] into output[0]
  }
}

// -----

// What was redirected stays where it is.
// CHECK-LABEL: "redirected_once"
inst.program "redirected_once" implements "custom" ranks 2 attributes {input_chunks = array<i32: 4, 4>,
    output_chunks = array<i32: 4, 4>, scratch_chunks = array<i32: 4, 4>, in_place_offsets = array<i32: 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into scratch[0]{{$}}
    // CHECK-NEXT: inst.reduce scratch[0], input[0] into output[1]{{$}}
    // CHECK-NEXT: inst.copy scratch[0] into output[0]{{$}}
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.copy scratch[0] into scratch[1]
    %2 = inst.reduce scratch[0], input[0] into output[1]
    %3 = inst.copy scratch[1] into output[0]
  }
}

// -----

// What was redirected reads its new place before that is overwritten: the second copy stays behind the send.
// CHECK-LABEL: "read_before"
inst.program "read_before" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv transfer(0) into output[0]{{$}}
    // CHECK-NEXT: inst.recv transfer(1) into scratch[0]{{$}}
    // CHECK-NEXT: inst.reduce output[0], input[0] into output[1]{{$}}
    // CHECK-NEXT: inst.copy scratch[0] into output[0]{{$}}
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.copy scratch[0] into output[0]
    %2 = inst.recv transfer(1) into scratch[1]
    %3 = inst.reduce scratch[0], input[0] into output[1]
    %4 = inst.copy scratch[1] into output[0]
  }
  inst.rank 2 {
  }
}

// -----

// A value that goes on twice is sent apart if one message is all that may go along; one that goes on once stays fused.
// What arrives for a reduction is stored first if it is not to be reduced on arrival.
// CHECK-LABEL: "wide"
// NARROW-LABEL: "wide"
// STORED-LABEL: "wide"
inst.program "wide" implements "custom" ranks 3 attributes {input_chunks = array<i32: 4, 4, 4>,
    output_chunks = array<i32: 4, 4, 4>, scratch_chunks = array<i32: 4, 4, 4>, in_place_offsets = array<i32: 0, 0, 0>,
    part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.send input[0] into transfer(0)
    %1 = inst.send input[1] into transfer(1)
    %2 = inst.recv transfer(2) into output[0]
  }
  inst.rank 1 {
    // CHECK: inst.rank 1
    // CHECK-NEXT: inst.recv_reduce_copy_send transfer(0), input[0] into output[0], transfer(2), transfer(3)
    // CHECK-NEXT: inst.recv_copy_send transfer(1) into output[1], transfer(4)
    // NARROW: inst.rank 1
    // NARROW-NEXT: inst.recv_reduce_copy transfer(0), input[0] into output[0]{{$}}
    // NARROW-NEXT: inst.send output[0] into transfer(2)
    // NARROW-NEXT: inst.send output[0] into transfer(3)
    // NARROW-NEXT: inst.recv_copy_send transfer(1) into output[1], transfer(4)
    // STORED: inst.rank 1
    // STORED-NEXT: inst.recv transfer(0) into scratch[0]
    // STORED-NEXT: inst.reduce scratch[0], input[0] into output[0]
    // STORED-NEXT: inst.send output[0] into transfer(2)
    // STORED-NEXT: inst.send output[0] into transfer(3)
    // STORED-NEXT: inst.recv_copy_send transfer(1) into output[1], transfer(4)
    %0 = inst.recv transfer(0) into scratch[0]
    %1 = inst.reduce scratch[0], input[0] into output[0]
    %2 = inst.send output[0] into transfer(2)
    %3 = inst.send output[0] into transfer(3)
    %4 = inst.recv transfer(1) into output[1]
    %5 = inst.send output[1] into transfer(4)
  }
  inst.rank 2 {
    %0 = inst.recv transfer(3) into output[0]
    %1 = inst.recv transfer(4) into output[1]
  }
}
