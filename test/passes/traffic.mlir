// RUN: boa-opt %s > %t
// RUN: FileCheck %s < %t
// RUN: boa-opt %t | diff %t -
// RUN: boa-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: boa-opt %s --mlir-print-op-generic | boa-opt | diff %t -

// A step's traffic: a row for each run and direction. Long rows are wrapped; no line is longer
// than 104 characters.

// CHECK:      boa.step @step(%{{.*}}, %{{.*}}) traffic {
// CHECK-NEXT:   first read weights 8192
// CHECK-NEXT:   first written{{$}}
// CHECK-NEXT:   second to_device gradients 4096, weights 16384
// CHECK-NEXT:   each read boundary_gradients 2949120, checkpoints 6094848, gradients 1900544, master 3792896,
// CHECK-NEXT:     momentum 7585792, variance 7585792, weights 5718016
// CHECK-NEXT:   each to_host weights 0
// CHECK-NEXT: } {
// GENERIC:      first = {read = {weights = 8192 : i64}, written = {}}
// GENERIC-SAME: second = {to_device = {gradients = 4096 : i64, weights = 16384 : i64}}
boa.step @step(%step, %pending) traffic {
  first written
  first read weights 8192
  second to_device weights 16384, gradients 4096
  each read boundary_gradients 2949120, checkpoints 6094848, gradients 1900544, master 3792896, momentum 7585792, variance 7585792, weights 5718016
  each to_host weights 0
} {
}

// A label that is a word of the rows, or no word, stands in quotes.

// CHECK:      boa.step @drain(%{{.*}}, %{{.*}}) traffic {
// CHECK-NEXT:   second read "each" 1, weights 2
// CHECK-NEXT:   each read "first" 1
// CHECK-NEXT:   each written "a b" 1, read 3
// CHECK-NEXT: } {
boa.step @drain(%step, %pending) attributes {traffic = {second = {read = {each = 1 : i64, weights = 2 : i64}}, each = {read = {first = 1 : i64}, written = {"a b" = 1 : i64, read = 3 : i64}}}} {
}

// Beside traffic, other attributes.

// CHECK:      boa.step @evaluate(%{{.*}}, %{{.*}}) traffic {
// CHECK-NEXT:   each read weights 1
// CHECK-NEXT: } attributes {note} {
boa.step @evaluate(%step, %pending) attributes {traffic = {each = {read = {weights = 1 : i64}}}, note} {
}
