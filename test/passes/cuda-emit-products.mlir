// RUN: boa-opt %s --split-input-file --cuda-emit-products --canonicalize --verify-diagnostics | FileCheck %s

// bf16: blocks of four warps own 64 x 64 of c. Of three strips two are on their way while one is
// multiplied; one barrier is between a strip's last use and its next copy. A warp has a quarter:
// two by four tiles, of two steps along the sum. Where rows of c end within a block, it looks.

// CHECK-LABEL: boa.kernel @narrow
// CHECK:         memref.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : memref<2x50x96xbf16> into memref<100x96xbf16>
// CHECK:         gpu.launch blocks({{.*}}) in ({{.*}} = %c2, {{.*}} = %c1, {{.*}} = %c1) threads({{.*}}) in ({{.*}} = %c128, {{.*}} = %c1, {{.*}} = %c1)
// CHECK-SAME:    workgroup({{.*}} : memref<192x32xbf16, #gpu.address_space<workgroup>>, {{.*}} : memref<96x64xbf16, #gpu.address_space<workgroup>>)
// CHECK-COUNT-8: nvgpu.device_async_copy {{.*}} {bypassL1} : memref
// CHECK:         %[[GROUP:.*]] = nvgpu.device_async_create_group
// CHECK:         scf.for
// CHECK:           nvgpu.device_async_wait %[[GROUP]] {numGroups = 1 : i32}
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-4:   nvgpu.device_async_copy
// CHECK:           nvgpu.device_async_create_group
// CHECK-NOT:       gpu.barrier
// CHECK-COUNT-2:   nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = false} : memref<192x32xbf16
// CHECK-COUNT-2:   nvgpu.ldmatrix {{.*}} {numTiles = 4 : i32, transpose = true} : memref<96x64xbf16
// CHECK-COUNT-8:   nvvm.mma.sync {{.*}} {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
// CHECK-COUNT-4:   nvgpu.ldmatrix
// CHECK-COUNT-8:   nvvm.mma.sync
// CHECK-NOT:       nvvm.mma.sync
// CHECK:           scf.yield
// CHECK:         nvgpu.device_async_wait %[[GROUP]] {numGroups = 0 : i32}
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %c100
// CHECK:         scf.if %[[IN]] {
// The bias, then the addend, then one rounding. All columns are in c.
// CHECK-NOT:       scf.if
// CHECK:           memref.load {{.*}} : memref<64xbf16>
// CHECK:           arith.addf
// CHECK:           memref.load {{.*}} : memref<100x64xbf16>
// CHECK:           arith.addf
// CHECK:           arith.truncf
// CHECK:           memref.store {{.*}} : memref<100x64xbf16>
// CHECK-NOT:     kernel.gemm
boa.kernel @narrow(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<2x50x96xbf16>
  %b = kernel.view %p + 32768 : memref<96x64xbf16>
  %bias = kernel.view %p + 65536 : memref<64xbf16>
  %c = kernel.view %w + 0 : memref<2x50x64xbf16>
  kernel.gemm %a, %b bias %bias into %c {accumulate} : (memref<2x50x96xbf16>, memref<96x64xbf16>, memref<64xbf16>, memref<2x50x64xbf16>) -> ()
  boa.return
}

// -----

// f32: 256 threads with 4 x 4 elements each. Rows of a begin anywhere: it is loaded element by
// element, with zeros past its end.

// CHECK-LABEL: boa.kernel @wide
// CHECK:         gpu.launch {{.*}} threads({{.*}}) in ({{.*}} = %c256, {{.*}} = %c1)
// CHECK-SAME:    workgroup({{.*}} : memref<48x64xf32, #gpu.address_space<workgroup>>, {{.*}} : memref<192x16xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-4: memref.load {{.*}} : memref<30x33xf32>
// CHECK:         nvgpu.device_async_copy {{.*}} 4, %{{.*}} {bypassL1} : memref<20x30xf32
// CHECK:         scf.for
// CHECK-NOT:     nvvm.mma.sync
// CHECK:         scf.for
// CHECK-COUNT-64: math.fma
// CHECK-NOT:     math.fma
// CHECK:         memref.load {{.*}} : memref<33x20xf32>
// CHECK:         memref.store {{.*}} : memref<33x20xf32, strided<[64, 1]>>
boa.kernel @wide(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<30x33xf32>
  %b = kernel.view %p + 32768 : memref<20x32xf32>
  %b30 = memref.subview %b[0, 0] [20, 30] [1, 1] : memref<20x32xf32> to memref<20x30xf32, strided<[32, 1]>>
  %addend = kernel.view %p + 65536 : memref<33x20xf32>
  %all = kernel.view %w + 0 : memref<33x64xf32>
  %c = memref.subview %all[0, 0] [33, 20] [1, 1] : memref<33x64xf32> to memref<33x20xf32, strided<[64, 1]>>
  kernel.gemm %a, %b30 into %c plus %addend {transpose_a, transpose_b} : (memref<30x33xf32>, memref<20x30xf32, strided<[32, 1]>>, memref<33x20xf32, strided<[64, 1]>>, memref<33x20xf32>) -> ()
  boa.return
}

// -----

boa.kernel @refused(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %all = kernel.view %p + 0 : memref<2x60x96xbf16>
  %a = memref.subview %all[0, 0, 0] [2, 50, 96] [1, 1, 1] : memref<2x60x96xbf16> to memref<2x50x96xbf16, strided<[5760, 96, 1]>>
  %b = kernel.view %p + 32768 : memref<96x64xbf16>
  %c = kernel.view %w + 0 : memref<2x50x64xbf16>
  // expected-error @+1 {{'kernel.gemm' op expected rows of its operands to be evenly apart}}
  kernel.gemm %a, %b into %c : (memref<2x50x96xbf16, strided<[5760, 96, 1]>>, memref<96x64xbf16>, memref<2x50x64xbf16>) -> ()
  boa.return
}

// -----

// A table of ten million tokens has more blocks of columns than may be along y: they are along x.

// CHECK-LABEL: boa.kernel @table
// CHECK:         gpu.launch blocks(%[[X:[^,]*]], %[[Y:[^,]*]], %{{.*}}) in (%{{.*}} = %c78125, %{{.*}} = %c2, %{{.*}} = %c1) threads
// CHECK-DAG:     %[[ROW:.*]] = arith.muli %[[Y]], %c128
// CHECK-DAG:     %[[COLUMN:.*]] = arith.muli %[[X]], %c128
// CHECK:         memref.store {{.*}} : memref<256x10000000xf32>
boa.kernel @table(%p: !llvm.ptr, %w: !llvm.ptr, %q: !llvm.ptr) {
  %a = kernel.view %p + 0 : memref<32x256xf32>
  %b = kernel.view %p + 32768 : memref<32x10000000xf32>
  %c = kernel.view %w + 0 : memref<256x10000000xf32>
  kernel.gemm %a, %b into %c {transpose_a} : (memref<32x256xf32>, memref<32x10000000xf32>, memref<256x10000000xf32>) -> ()
  boa.return
}
