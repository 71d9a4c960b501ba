// RUN: boa-opt %s --convert-boa-to-runtime --split-input-file | FileCheck %s

// Each op of the storage phase is one call of the C ABI; storages, groups and kernels
// are numbers, in the order in which they stand. Loops stay loops.

// CHECK-LABEL: func.func @boa_step
// CHECK-SAME:    (%[[CONTEXT:.*]]: !llvm.ptr, %[[STEP:.*]]: i64, %[[PENDING:.*]]: i64)
// CHECK:         scf.for %[[L:[a-z0-9]+]] =
// CHECK:           scf.for %[[J:[a-z0-9]+]] =

// The snake: downward where l + 1 is odd.

// CHECK:             %[[SUM:.*]] = arith.addi %[[L]], %{{.*}} : index
// CHECK:             %[[WIDE:.*]] = arith.index_cast %[[SUM]]
// CHECK:             %[[ODD:.*]] = arith.trunci %[[WIDE]] : i64 to i1
// CHECK:             %[[DOWN:.*]] = arith.subi %{{.*}}, %[[J]]
// CHECK:             %[[M:.*]] = arith.select %[[ODD]], %[[DOWN]], %[[J]]

// Storage 1, entry 4 * l + m of two dimensions, the first and only chunk.

// CHECK:             %[[FIRST:.*]] = arith.constant 0 : i32
// CHECK:             %[[STORAGE:.*]] = arith.constant 1 : i32
// CHECK:             %[[DIM:.*]] = arith.constant 4 : index
// CHECK:             %[[ROW:.*]] = arith.muli %[[L]], %[[DIM]]
// CHECK:             %[[AT:.*]] = arith.addi %[[ROW]], %[[M]]
// CHECK:             %[[ENTRY:.*]] = arith.index_cast %[[AT]] : index to i64
// CHECK:             %[[COUNT:.*]] = arith.constant 1 : i32
// Kernels take it, so it is wanted in the device's space, 0.
// CHECK:             %[[SPACE:.*]] = arith.constant 0 : i32
// CHECK:             %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK:             %[[X:.*]] = func.call @boa_rt_prefetch(%[[CONTEXT]], %[[STORAGE]], %[[ENTRY]], %[[FIRST]], %[[COUNT]], %[[SPACE]], %[[ZERO]]) : (!llvm.ptr, i32, i64, i32, i32, i32, i32) -> i64
// CHECK:             %[[Y:.*]] = func.call @boa_rt_create(%[[CONTEXT]],
// The buffers of a launch are an array, in the kernel's order.
// CHECK:             llvm.store %[[X]], %{{.*}} : i64, !llvm.ptr
// CHECK:             llvm.store %[[Y]], %{{.*}} : i64, !llvm.ptr
// CHECK:             %[[KERNEL:.*]] = arith.constant 0 : i32
// CHECK:             %[[COUNT:.*]] = arith.constant 2 : i32
// CHECK:             call @boa_rt_launch(%[[CONTEXT]], %[[KERNEL]], %[[COUNT]], %{{.*}})
// CHECK:             call @boa_rt_offload(%[[CONTEXT]], %[[Y]],
// CHECK:             call @boa_rt_release(%[[CONTEXT]], %[[X]],
// at_last is a comparison of the counter.
// CHECK:             %[[KEEP:.*]] = arith.extui %{{.*}} : i1 to i32
// CHECK:             call @boa_rt_release(%[[CONTEXT]], %[[Y]], %[[KEEP]])

// A delayed update is skipped whole where nothing is pending, transfers included.

// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[SOME:.*]] = arith.cmpi ne, %{{.*}}, %[[ZERO]] : index
// CHECK:         scf.if %[[SOME]] {
// CHECK:           scf.for

// The optimizer takes what is in the host's space, 1.

// CHECK:             %[[COUNT:.*]] = arith.constant 1 : i32
// CHECK-NEXT:        %[[SPACE:.*]] = arith.constant 1 : i32
// CHECK-NEXT:        %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT:        func.call @boa_rt_prefetch(%[[CONTEXT]], %{{.*}}, %{{.*}}, %{{.*}}, %[[COUNT]], %[[SPACE]], %[[ZERO]])
// CHECK:             call @boa_rt_update(
// CHECK:         call @boa_rt_norm(%[[CONTEXT]],
// CHECK:         call @boa_rt_norm_done(%[[CONTEXT]],
// CHECK:         return

// The descriptor says the rest; nothing of the dialect is left.

// CHECK-NOT:   boa.
// CHECK:       llvm.mlir.global external constant @boa_program(

// What a kernel costs and what the device does each second, by format.

// CHECK-SAME:    \22costs\22:{\22bf16\22:{\22attention_flops\22:0,\22bytes\22:6,\22elementwise_bytes\22:0,\22flops\22:5,\22product_flops\22:5},\22f32\22:{\22attention_flops\22:0,\22bytes\22:4,\22elementwise_bytes\22:0,\22flops\22:3,\22product_flops\22:0}}
// CHECK-SAME:    \22compute\22:{\22bf16\22:7,\22f32\22:0}

// A home for each range of entries and of chunks, slots by space and size.

// CHECK-SAME:    \22homes\22:[{\22entries\22:1,\22homes\22:[{\22chunks\22:4,\22tier\22:\22ssd\22}]}]
// CHECK-SAME:    \22pools\22:[{\22chunks\22:1,\22slots\22:1,\22space\22:\22device\22}]
// CHECK-SAME:    \22homes\22:[{\22entries\22:4,\22homes\22:[{\22chunks\22:1,\22tier\22:\22host\22}]},{\22entries\22:8,\22homes\22:[{\22chunks\22:1,\22tier\22:\22ssd\22}]}]

// A setting that the module does not give has its default.

// CHECK-SAME:    \22mask_probability\22:0.1{{4999|5}}
// CHECK-SAME:    \22beta1\22:0.9
// CHECK-SAME:    \22beta2\22:0.999
// CHECK-SAME:    \22eps\22:1e-08
// CHECK-NOT:   boa.storage
// CHECK-NOT:   boa.group
// CHECK-NOT:   boa.step

module attributes {boa.arena = 0 : i64, boa.workspace = 0 : i64} {
  boa.config @machine {compute = {bf16 = 7 : i64}}
  boa.config @model {name = "m"}
  boa.config @train {batch = 4 : i64, optimizer = {kind = "sgd"}}
  boa.config @plan {micro_batch = 1 : i64}
  boa.group @a repeat 1 {
    boa.param @w : tensor<16384xf32> = "ones"
  }
  boa.storage @weights.a[1] : tensor<16384xf32> on ssd role weights chunks 4 persistent slots device 1 x 1
  boa.storage @x[3, 4] : tensor<1024xf32> on [0 to 4: host, 4 to 12: ssd] role checkpoints slots device 2 x 1
  boa.storage @gradients.a[1] : tensor<16384xf32> on ssd role gradients chunks 4 slots device 1 x 4
  boa.kernel @k(%buffers: !llvm.ptr, %workspace: !llvm.ptr, %queue: !llvm.ptr) reads [tensor<1024xf32>] writes [tensor<1024xf32>]
      costs {f32 = #boa.cost<flops = 3, bytes = 4>, bf16 = #boa.cost<flops = 5, bytes = 6, product_flops = 5>} {
    boa.return
  }
  boa.step @step(%step, %pending) traffic {
    first read
    first written
    each read
    each written
  } {
    %c0 = arith.constant 0 : index
    boa.loop layer %l = 0 to 2 forward {
      %l1 = boa.shift %l, 1
      boa.loop micro_batch %m = 0 to 4 snake(%l + 1) {
        %x = boa.prefetch @x[%l, %m] : <tensor<1024xf32>, device>
        %y = boa.create @x[%l1, %m] : <tensor<1024xf32>, device>
        boa.launch @k reads(%x : <tensor<1024xf32>, device>) writes(%y : <tensor<1024xf32>, device>)
        boa.offload %y, @x[%l1, %m] : <tensor<1024xf32>, device>
        boa.release %x : <tensor<1024xf32>, device>
        %last = boa.at_last %m
        boa.release %y retain %last : <tensor<1024xf32>, device>
      }
    }
    boa.loop chunk %c = 2 to 4 forward if %pending {
      %g = boa.prefetch @gradients.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      %w = boa.prefetch @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.update @a chunk %c step %pending weights(%w : <tensor<16384xf32>, host>) gradient(%g : <tensor<16384xf32>, host>)
      boa.offload %w, @weights.a[%c0] chunk %c count 1 : <tensor<16384xf32>, host>
      boa.release %g : <tensor<16384xf32>, host>
      boa.release %w : <tensor<16384xf32>, host>
    }
    %g = boa.prefetch @gradients.a[%c0] : <tensor<16384xf32>, host>
    boa.norm @a gradient %g : <tensor<16384xf32>, host>
    boa.release %g : <tensor<16384xf32>, host>
    boa.finish_norm %step
  }
}
