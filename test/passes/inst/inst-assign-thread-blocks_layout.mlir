// RUN: occl-opt %s -inst-assign-thread-blocks=layout=best -verify-diagnostics

// expected-error @+1 {{cannot have the layout 'best'; there are auto, balanced, phases, peers and earliest [E113]}}
inst.program "x" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>, output_chunks = array<i32: 4>,
    scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>, part_chunks = 1 : i32, in_place = false} {
  inst.rank 0 {
    %0 = inst.copy input[0] into output[0]
  }
}
