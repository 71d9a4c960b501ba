// RUN: boa-opt %s --split-input-file --verify-diagnostics

// What has been prefetched and not awaited is a token, which no op takes for data:
// a use without an await is not a program.

module {
  boa.storage @x[2] : tensor<8xf32> on ssd role "x" persistent
  boa.step @step(%step, %pending) {
    %c0 = arith.constant 0 : index
    // expected-note @below {{prior use here}}
    %0 = boa.prefetch @x[%c0]
    // expected-error @below {{use of value '%0' expects different type than prior uses: '!boa.buffer<tensor<8xf32>>' vs '!boa.token'}}
    boa.launch @k reads(%0 : !boa.buffer<tensor<8xf32>>)
  }
}
