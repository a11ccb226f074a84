// The custom form, the generic form and bytecode all carry everything.
// RUN: occl-opt %s | FileCheck %s
// RUN: occl-opt %s --mlir-print-op-generic | occl-opt | FileCheck %s
// RUN: occl-opt %s --emit-bytecode | occl-opt | FileCheck %s

// CHECK: chunk.program "sum" implements "allreduce" ranks 2 attributes {
// CHECK-SAME: hints = array<i32: 2, -1, -1, -1, 1, 0, 3, 4>
// CHECK-SAME: parameter_names = ["ranks"]
chunk.program "sum" implements "allreduce" ranks 2 attributes {
    input_chunks = array<i32: 2, 2>, output_chunks = array<i32: 2, 2>, scratch_chunks = array<i32: 0, 1>,
    in_place_offsets = array<i32: 0, 0>, part_chunks = 2 : i32, in_place = false,
    parameter_names = ["ranks"], parameter_values = array<i64: 2>, max_bytes = 65536 : i64,
    hints = array<i32: 2, -1, -1, -1, 1, 0, 3, 4>} {
  // CHECK: %[[A:.*]] = chunk.read input[0][0] count 2
  %0 = chunk.read input[0][0] count 2
  // CHECK: %[[B:.*]] = chunk.read input[1][0] count 2
  %1 = chunk.read input[1][0] count 2
  // CHECK: %[[C:.*]] = chunk.reduce %[[A]], %[[B]] into output[1][0] count 2 channel 3 final
  %2 = chunk.reduce %0, %1 into output[1][0] count 2 channel 3 final
  // CHECK: chunk.copy %[[C]] into output[0][0] count 2
  %3 = chunk.copy %2 into output[0][0] count 2
  // CHECK: chunk.copy %{{.*}} into output[0][0] count 2 hint 0{{$}}
  %6 = chunk.copy %2 into output[0][0] count 2 hint 0
  // CHECK: chunk.reduce %{{.*}} into output[1][0] count 2 channel 3 hint 1 final
  %7 = chunk.reduce %0, %1 into output[1][0] count 2 channel 3 hint 1 final
  // CHECK: %[[D:.*]] = chunk.read scratch[1][0]{{$}}
  %4 = chunk.read scratch[1][0]
  // CHECK: chunk.copy %[[D]] into scratch[1][0] channel 1{{$}}
  %5 = chunk.copy %4 into scratch[1][0] channel 1
}
