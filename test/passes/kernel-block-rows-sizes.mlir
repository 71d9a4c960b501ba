// However many rows there are, there are at most 64 blocks, and none has fewer rows than the least,
// here 128; `bytes` are those of 128 rows, so that a block is larger only for the sake of that.

// DEFINE: %{before} = --convert-boa-to-blas --convert-boa-to-linalg --cse \
// DEFINE:   --kernel-fuse-elementwise --canonicalize --cse
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows="bytes=16384 least=128" \
// RUN:   --remarks-filter=boa-kernel 2>&1 | FileCheck %s --implicit-check-not="Passed] block-rows"
// RUN: boa-opt %s %{before} --split-input-file --kernel-block-rows="bytes=16384 least=128" \
// RUN:   | FileCheck %s --check-prefix=CODE

// 129 rows are not two blocks.

// CODE-LABEL: boa.kernel @just_above(
// CODE:          kernel.gemm {{.*}} -> tensor<1x129x32xf32>
// CODE-NOT:      kernel.gemm
boa.kernel @just_above(%x: tensor<1x129x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x129xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x129x4xf32>, tensor<4x32xf32>) -> tensor<1x129x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x129x32xf32>, tensor<1x129xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// 256 are.

// CHECK: [Passed] block-rows | {{.*}}blocks=2, of=128, rows=256, to=128
// CODE-LABEL: boa.kernel @twice(
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE-NOT:      kernel.gemm
boa.kernel @twice(%x: tensor<1x256x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x256xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x256x4xf32>, tensor<4x32xf32>) -> tensor<1x256x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x256x32xf32>, tensor<1x256xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// A multiple of 16 would leave 113 for the second.

// CHECK: [Passed] block-rows | {{.*}}blocks=2, of=129, rows=257, to=128
// CODE-LABEL: boa.kernel @uneven(
// CODE:          kernel.gemm {{.*}} -> tensor<1x129x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE-NOT:      kernel.gemm
boa.kernel @uneven(%x: tensor<1x257x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x257xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x257x4xf32>, tensor<4x32xf32>) -> tensor<1x257x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x257x32xf32>, tensor<1x257xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// Seven of at least 128, of which one has a row more: in blocks of 129 the last would have 123.

// CHECK: [Passed] block-rows | {{.*}}blocks=7, of=129, rows=897, to=128
// CODE-LABEL: boa.kernel @many(
// CODE:          kernel.gemm {{.*}} -> tensor<1x129x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x128x32xf32>
// CODE-NOT:      kernel.gemm
boa.kernel @many(%x: tensor<1x897x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x897xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x897x4xf32>, tensor<4x32xf32>) -> tensor<1x897x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x897x32xf32>, tensor<1x897xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// A prime number.

// CHECK: [Passed] block-rows | {{.*}}blocks=7, of=145, rows=1009, to=139
// CODE-LABEL: boa.kernel @prime(
// CODE:          kernel.gemm {{.*}} -> tensor<1x145x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x145x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x145x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x145x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x145x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x145x32xf32>
// CODE:          kernel.gemm {{.*}} -> tensor<1x139x32xf32>
// CODE-NOT:      kernel.gemm
boa.kernel @prime(%x: tensor<1x1009x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x1009xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x1009x4xf32>, tensor<4x32xf32>) -> tensor<1x1009x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x1009x32xf32>, tensor<1x1009xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// More of them.

// CHECK: [Passed] block-rows | {{.*}}blocks=63, of=131, rows=8191, to=130
// CODE-LABEL: boa.kernel @large_prime(
boa.kernel @large_prime(%x: tensor<1x8191x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x8191xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x8191x4xf32>, tensor<4x32xf32>) -> tensor<1x8191x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x8191x32xf32>, tensor<1x8191xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// More than 64 blocks of 128 hold.

// CHECK: [Passed] block-rows | {{.*}}blocks=64, of=1563, rows=100003, to=1534
// CODE-LABEL: boa.kernel @very_many(
boa.kernel @very_many(%x: tensor<1x100003x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1x100003xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1x100003x4xf32>, tensor<4x32xf32>) -> tensor<1x100003x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1x100003x32xf32>, tensor<1x100003xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// Of many sequences that are just longer than a block each is one: in halves they would be too small.

// CHECK: [Passed] block-rows | {{.*}}blocks=60, of=129, rows=7740, to=129
// CODE-LABEL: boa.kernel @sequences(
boa.kernel @sequences(%x: tensor<60x129x4xf32>, %w: tensor<4x32xf32>, %t: tensor<60x129xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<60x129x4xf32>, tensor<4x32xf32>) -> tensor<60x129x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<60x129x32xf32>, tensor<60x129xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// And in halves they would be too many.

// CHECK: [Passed] block-rows | {{.*}}blocks=33, of=260, rows=8580, to=260
// CODE-LABEL: boa.kernel @long_sequences(
boa.kernel @long_sequences(%x: tensor<33x260x4xf32>, %w: tensor<4x32xf32>, %t: tensor<33x260xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<33x260x4xf32>, tensor<4x32xf32>) -> tensor<33x260x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<33x260x32xf32>, tensor<33x260xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}

// -----

// Of short ones a block holds 22 or 23: 6000 rows.

// CHECK: [Passed] block-rows | {{.*}}blocks=45, of=138, rows=6000, to=132
// CODE-LABEL: boa.kernel @short_sequences(
boa.kernel @short_sequences(%x: tensor<1000x6x4xf32>, %w: tensor<4x32xf32>, %t: tensor<1000x6xi32>)
    -> tensor<f32> {
  %y = boa.linear %x, %w : (tensor<1000x6x4xf32>, tensor<4x32xf32>) -> tensor<1000x6x32xf32>
  %loss = boa.cross_entropy %y, %t : (tensor<1000x6x32xf32>, tensor<1000x6xi32>) -> tensor<f32>
  boa.return %loss : tensor<f32>
}
