// RUN: boa-opt %s --kernel-expand-math | FileCheck %s

// The exponential is a polynomial times a power of 2. Its exponent comes out of a sum of floats: no number is
// converted to an integer, since that of NaN is poison.

// CHECK-LABEL: boa.kernel @exp
// CHECK-NOT:     math.exp
// CHECK-NOT:     arith.fptosi
// CHECK:         %[[SHIFTED:.*]] = arith.addf %{{.*}}, %[[SHIFT:.*]] : f32
// CHECK:         arith.subf %[[SHIFTED]], %[[SHIFT]]
// CHECK-COUNT-8: math.fma
// CHECK-NOT:     arith.fptosi
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[SHIFTED]] : f32 to i32
// CHECK-NEXT:    arith.shli %[[BITS]]
// CHECK-NEXT:    arith.addi
// CHECK-NEXT:    arith.bitcast
// CHECK-NEXT:    arith.mulf
// CHECK-NEXT:    return
boa.kernel @exp(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  boa.return %0 : f32
}
