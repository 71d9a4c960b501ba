// RUN: boa-opt %s --boa-outline-kernels | FileCheck %s
// RUN: sed 's/weights = "bf16"/weights = "f32"/; s/tensor<2048xbf16>/tensor<2048xf32>/g' %s \
// RUN:   | boa-opt --boa-outline-kernels | FileCheck %s --check-prefix=F32

// A kernel reads weights as they are stored. So weights in bf16 are not rounded, which would move 64
// elements of 4 and of 2 bytes. The activation %x has 32 elements, and is always rounded.

// CHECK: costs {bf16 = #boa.cost<{{.*}}>, f32 = #boa.cost<flops = 32, bytes = 192, elementwise_bytes = 192>}
// F32: costs {bf16 = #boa.cost<{{.*}}>, f32 = #boa.cost<flops = 96, bytes = 576, elementwise_bytes = 576>}
module {
  boa.config @train {weights = "bf16"}
  boa.group @block repeat 1 {
    boa.param @w : tensor<8x8xf32> = "ones"
  }
  boa.storage @weights.block[1] : tensor<2048xbf16> on device role weights persistent
  boa.storage @x[1] : tensor<4x8xf32> on device role checkpoints
  boa.storage @y[1] : tensor<4x8xbf16> on device role checkpoints
  func.func @block_forward(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {boa.param = @block::@w}) -> tensor<4x8xbf16> {
    %0 = boa.cast %x : tensor<4x8xf32> to tensor<4x8xbf16>
    %1 = boa.cast %w : tensor<8x8xf32> to tensor<8x8xbf16>
    %2 = boa.linear %0, %1 : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    return %2 : tensor<4x8xbf16>
  }
  boa.step @evaluate(%step, %pending) {
    %c0 = arith.constant 0 : index
    %w = boa.prefetch @weights.block[%c0] : <tensor<2048xbf16>, device>
    %x = boa.create @x[%c0] : <tensor<4x8xf32>, device>
    %y = boa.create @y[%c0] : <tensor<4x8xbf16>, device>
    boa.launch @block_forward reads(%x, %w : <tensor<4x8xf32>, device>, <tensor<2048xbf16>, device>) writes(%y : <tensor<4x8xbf16>, device>)
    boa.release %y : <tensor<4x8xbf16>, device>
    boa.release %x : <tensor<4x8xf32>, device>
    boa.release %w : <tensor<2048xbf16>, device>
  }
}
