# The kernel dialect and the passes from compute bodies to machine code.
set(LLVM_TARGET_DEFINITIONS KernelOps.td)
mlir_tablegen(KernelDialect.h.inc -gen-dialect-decls -dialect=kernel)
mlir_tablegen(KernelDialect.cpp.inc -gen-dialect-defs -dialect=kernel)
mlir_tablegen(KernelOps.h.inc -gen-op-decls -dialect=kernel)
mlir_tablegen(KernelOps.cpp.inc -gen-op-defs -dialect=kernel)
set(LLVM_TARGET_DEFINITIONS KernelPasses.td)
mlir_tablegen(KernelPasses.h.inc -gen-pass-decls -name BoaKernel)
add_public_tablegen_target(boa_kernels_gen)

boa_mlir_library(boa_kernels
  AssignWorkspace.cpp
  BindKernelArguments.cpp
  BufferizeKernels.cpp
  Codegen.cpp
  ConvertBoaToBlas.cpp
  ConvertBoaToLinalg.cpp
  ConvertKernelToLLVM.cpp
  ConvertRowOps.cpp
  ElideKernelCopies.cpp
  ExpandKernelMath.cpp
  FormKernelLoops.cpp
  FuseKernelElementwise.cpp
  KernelDialect.cpp
  KernelPipeline.cpp
  LinalgBuilder.cpp
  LoopEmitter.cpp
  MemoryAccess.cpp
  OutlineKernelLoops.cpp
  DEPENDS boa_kernels_gen boa_passes_gen
  LINK_LIBS boa_dialect)
