// RUN: boa-opt %s | FileCheck %s --strict-whitespace --match-full-lines

// One space on either side of what may stand before a body.

//      CHECK:  boa.step @evaluate(%[[S:[a-z0-9]+]], %{{[a-z0-9]+}}) {
// CHECK-NEXT:    boa.loop layer %{{[a-z0-9]+}} = 0 to 2 forward {
//      CHECK:    boa.loop layer %{{[a-z0-9]+}} = 0 to 2 snake(%[[S]] + 1) {
//      CHECK:    boa.loop layer %{{[a-z0-9]+}} = 0 to 2 reverse {
// CHECK-NEXT:    } attributes {note = 1 : i64}
//      CHECK:  boa.step @predict(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) attributes {note = 1 : i64} {
boa.step @evaluate(%step, %pending) {
  boa.loop layer %l = 0 to 2 forward {
  }
  boa.loop layer %l = 0 to 2 snake(%step + 1) {
  }
  boa.loop layer %l = 0 to 2 reverse {
  } attributes {note = 1 : i64}
}
boa.step @predict(%step, %pending) attributes {note = 1 : i64} {
}
