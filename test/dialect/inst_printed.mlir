// What is printed between passes, and after one that has failed, is the program.
// RUN: occl-opt %s -inst-synchronize --mlir-print-ir-before-all --mlir-print-ir-after-all -o /dev/null 2>&1 | FileCheck %s
// RUN: not occl-opt %s -inst-schedule='weights=1' --mlir-print-ir-after-failure 2>&1 | FileCheck %s --check-prefix=FAILED
// An error within a pass does not show the program: its instructions are with the pass.
// RUN: not occl-opt %s -inst-schedule='weights=1' 2>&1 | FileCheck %s --check-prefix=ERROR --implicit-check-not='see current operation'

// CHECK: IR Dump Before InstSynchronize
// CHECK: inst.rank 0 {
// CHECK-NEXT: %0 = inst.copy input[0] into scratch[0] block 0{{$}}
// CHECK-NEXT: %1 = inst.copy scratch[0] into output[0] block 1{{$}}
// CHECK-NEXT: }
// CHECK: IR Dump After InstSynchronize
// CHECK: inst.rank 0 {
// CHECK-NEXT: %0 = inst.copy input[0] into scratch[0] block 0{{$}}
// CHECK-NEXT: %1 = inst.copy scratch[0] into output[0] block 1 after %0{{$}}
// CHECK-NEXT: }
// ERROR: error: 'inst.program' op needs eight weights
// FAILED: IR Dump After InstSchedule Failed
// FAILED: inst.rank 0 {
// FAILED-NEXT: %0 = inst.copy input[0] into scratch[0] block 0{{$}}
// FAILED-NEXT: %1 = inst.copy scratch[0] into output[0] block 1{{$}}
// FAILED-NEXT: }
inst.program "x" implements "custom" ranks 1 attributes {input_chunks = array<i32: 4>, output_chunks = array<i32: 4>,
    scratch_chunks = array<i32: 4>, in_place_offsets = array<i32: 0>, in_place = false} {
  inst.rank 0 {
    %0 = inst.copy input[0] into scratch[0] block 0
    %1 = inst.copy scratch[0] into output[0] block 1
  }
}
