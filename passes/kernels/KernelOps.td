//===- KernelOps.td - What a compute kernel is made of ------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNEL_OPS_TD
#define BOA_PASSES_KERNEL_OPS_TD

include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::boa::kernel";
  let summary = "Library calls, memory and groups of compute kernels";
  let description = [{
    Ops in the body of a `boa.kernel`. Between `boa` compute ops and LLVM stand
    `linalg` for what is generated and this dialect for the rest:

    ```
      boa ops --convert-boa-to-blas--> kernel.gemm / attention / scatter_rows
              --convert-boa-to-linalg--> linalg.generic
          | fusion, --kernel-block-rows, --kernel-bind-arguments, bufferization
      memrefs of kernel.argument, memref.alloc
          | --kernel-form-groups       kernel.group around linalg on the same rows
      what every target starts from: groups and library calls
          | --cpu-emit-groups          each group a kernel.parallel of loops
          | --kernel-assign-workspace  every alloc a kernel.view of the workspace
          | --cpu-outline-loops        loop bodies to functions on the pool
      LLVM, on a CPU

          | --cuda-emit-groups         each group a gpu.launch
          | --kernel-assign-workspace  the same, in the device's memory
          | --cuda-outline-launches    bodies to a gpu.module, each launch a kernel.launch_func
      LLVM on the host, which enqueues, and PTX
    ```

    The library ops are in destination style: on tensors they are pure and
    bufferize in place, on memrefs they write their `outs`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

class Kernel_Op<string mnemonic, list<Trait> traits = []>
    : Op<Kernel_Dialect, mnemonic, traits>;

/// A library call in destination style, on tensors or on memrefs. `inits` are its outs, and
/// `reads` says whether their previous contents matter.
class Kernel_LibraryOp<string mnemonic, string inits, string reads, list<Trait> traits = []>
    : Kernel_Op<mnemonic, !listconcat([
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>], traits)> {
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return " # inits #
    "; }\nbool readsInits() { return " # reads # "; }";
  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::mlir::SmallVectorImpl<
            ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>> &effects) {
      getLibraryEffects(*this, readsInits(), effects);
    }
  }];
  let hasVerifier = 1;
}

def Kernel_GemmOp : Kernel_LibraryOp<"gemm", "getCMutable()", "getAccumulate()",
                                     [AttrSizedOperandSegments]> {
  let summary = "c = a b + bias + addend, or c += a b + bias";
  let description = [{
    The rows of an operand are all its leading dimensions together. With
    `transpose_a` a is [k, m], with `transpose_b` b is [n, k]. The bias, one value
    for each column, is added to every row. With `accumulate` all of it is added
    to what c holds; with an `addend`, which is of c's type and lies elsewhere, to that. b, or a and b, or all three may be bf16 where the rest is f32.
    `scratch` is memory that a target's library may use on the way. `prepared` is the address of a
    form of b, which kernel.prepare made; if it is null, there is none.
    ```mlir
    %y = kernel.gemm %x, %w bias %b into %init {accumulate}
        : (tensor<8x256x384xf32>, tensor<384x1152xbf16>, tensor<1152xf32>, tensor<8x256x1152xf32>) -> tensor<8x256x1152xf32>
    ```
  }];
  let arguments = (ins AnyShaped:$a, AnyShaped:$b, Optional<AnyShaped>:$bias,
                       AnyShaped:$c, Optional<AnyMemRef>:$scratch,
                       Optional<AnyMemRef>:$addend, Optional<LLVM_DefaultPointer>:$prepared,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$accumulate,
                       DefaultValuedAttr<I64Attr, "0">:$prepared_offset);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $a `,` $b (`bias` $bias^)? `into` $c (`scratch` $scratch^)? (`plus` $addend^)?
    (`prepared` $prepared^ `+` $prepared_offset)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Kernel_PrepareOp : Kernel_Op<"prepare"> {
  let summary = "the form of b that a kernel.gemm of the CPU takes as `prepared`";
  let description = [{
    Its layout is the runtime's, which depends on the processor. It takes at most 4 * k bytes for
    each column, whose number is rounded up to a multiple of 16. `narrow_a` says that a is bf16, too.
  }];
  let arguments = (ins Arg<AnyStaticShapeMemRef, "", [MemRead]>:$b,
                       Arg<AnyStaticShapeMemRef, "", [MemWrite]>:$form,
                       UnitAttr:$transpose_b, UnitAttr:$narrow_a);
  let assemblyFormat = "$b `into` $form attr-dict `:` type($b) `,` type($form)";
}

def Kernel_AttentionOp
    : Kernel_LibraryOp<"attention", "{*this, getNumOperands() - 2, 2}", "false"> {
  let summary = "boa.attention into y and lse";
  let description = [{
    Of one element type, or of bf16 with lse in f32.
  }];
  let arguments = (ins AnyShaped:$q, AnyShaped:$k, AnyShaped:$v,
                       Optional<AnyShaped>:$document_starts, AnyShaped:$y, AnyShaped:$lse,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`documents` $document_starts^)? `into` $y `,` $lse attr-dict
    `:` functional-type(operands, results)
  }];
}

def Kernel_CachedAttentionOp
    : Kernel_LibraryOp<"cached_attention", "{*this, 4, 3}", "true"> {
  let summary = "boa.cached_attention into y and the caches";
  let arguments = (ins AnyShaped:$q, AnyShaped:$k, AnyShaped:$v, AnyShaped:$positions,
                       AnyShaped:$y, AnyShaped:$keys, AnyShaped:$values,
                       I64Attr:$heads, I64Attr:$kv_heads, OptionalAttr<I64Attr>:$window);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `at` $positions `into` $y `,` $keys `,` $values attr-dict
    `:` functional-type(operands, results)
  }];
}

def Kernel_AttentionGradOp
    : Kernel_LibraryOp<"attention_grad", "{*this, getNumOperands() - 3, 3}", "false"> {
  let summary = "boa.attention_grad into dq, dk and dv";
  let arguments = (ins AnyShaped:$q, AnyShaped:$k, AnyShaped:$v,
                       AnyShaped:$y, AnyShaped:$lse, AnyShaped:$dy,
                       Optional<AnyShaped>:$document_starts,
                       AnyShaped:$dq, AnyShaped:$dk, AnyShaped:$dv,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $y `,` $lse `,` $dy (`documents` $document_starts^)?
    `into` $dq `,` $dk `,` $dv attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_OfferAttentionOp
    : Kernel_Op<"offer_attention", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "attention on memrefs by a library, if it takes it";
  let description = [{
    Whether it does is found out where the program runs, and is the same in each call. If
    not, nothing was written.
    ```mlir
    %taken = kernel.offer_attention %q, %k, %v into %y, %lse scratch %s {causal, heads = 4 : i64, kv_heads = 2 : i64} : ...
    %left = arith.xori %taken, %true : i1
    scf.if %left { kernel.attention ... }
    ```
  }];
  let arguments = (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v,
                       AnyMemRef:$y, AnyMemRef:$lse, AnyMemRef:$scratch,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal);
  let results = (outs I1:$taken);
  let assemblyFormat = [{
    $q `,` $k `,` $v `into` $y `,` $lse `scratch` $scratch attr-dict
    `:` functional-type(operands, results)
  }];
}

def Kernel_OfferAttentionGradOp
    : Kernel_Op<"offer_attention_grad", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "kernel.attention_grad by a library, if it takes it";
  let description = [{
    `delta` is memory for the sums of y * dy by row.
  }];
  let arguments = (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v,
                       AnyMemRef:$y, AnyMemRef:$lse, AnyMemRef:$dy,
                       AnyMemRef:$dq, AnyMemRef:$dk, AnyMemRef:$dv,
                       AnyMemRef:$delta, AnyMemRef:$scratch,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal);
  let results = (outs I1:$taken);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $y `,` $lse `,` $dy `into` $dq `,` $dk `,` $dv
    `scratch` $delta `,` $scratch attr-dict `:` functional-type(operands, results)
  }];
}

def Kernel_ScatterRowsOp : Kernel_LibraryOp<"scatter_rows", "getTableMutable()", "true", [
    DeclareOpInterfaceMethods<TilingInterface,
      ["getLoopIteratorTypes", "getIterationDomain",
       "generateScalarImplementation"]>]> {
  let summary = "table[indices[i]] += rows[i], in order of i";
  let description = [{
    No library's: a group takes it. It goes over the elements of `rows`, parallel
    in the last dimension alone, since several rows may belong to one of the table.
    With `some`, an index may be of no row of the table: then its row is left out.
  }];
  let arguments = (ins AnyShaped:$indices, AnyShaped:$rows, AnyShaped:$table, UnitAttr:$some);
  let results = (outs Variadic<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`some` $some^)? $indices `,` $rows `into` $table attr-dict
    `:` functional-type(operands, results)
  }];
}

def Kernel_AngleFunction : I32EnumAttr<"AngleFunction", "what a table holds of angles", [
    I32EnumAttrCase<"Cosine", 0, "cosine">, I32EnumAttrCase<"Sine", 1, "sine">]> {
  let cppNamespace = "::boa::kernel";
}

def Kernel_AnglesOp : Kernel_Op<"angles", [Pure]> {
  let summary = "a table of cosines or sines";
  let description = [{
    table[t, i] is the cosine or sine of t * frequencies[i], computed in f64 and rounded
    once. A program has the frequencies alone: the runtime computes the table before the
    first kernel runs, and passes its address behind those of a kernel's buffers.
    ```mlir
    %cos = kernel.angles cosine [1.000000e+00, 1.000000e-02] : tensor<256x2xf32>
    ```
  }];
  let arguments = (ins Kernel_AngleFunction:$function, F64ArrayAttr:$frequencies);
  let results = (outs AnyStaticShapeTensor:$table);
  let assemblyFormat = "$function $frequencies attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Kernel_ArgumentOp : Kernel_Op<"argument", [Pure]> {
  let summary = "the address of buffers[index]; behind the buffers, of a table";
  let arguments = (ins LLVM_DefaultPointer:$buffers,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$index);
  let results = (outs LLVM_DefaultPointer:$pointer);
  let assemblyFormat = "$buffers `[` $index `]` attr-dict";
  let builders = [OpBuilder<(ins "::mlir::Value":$buffers, "int64_t":$index), [{
    build($_builder, $_state, buffers.getType(), buffers,
          $_builder.getI64IntegerAttr(index));
  }]>];
}

def Kernel_ViewOp : Kernel_Op<"view", [Pure]> {
  let summary = "memory at a static byte offset from a pointer, as a memref";
  let description = [{
    Different views that are live at once denote disjoint memory.
    ```mlir
    %h = kernel.view %workspace + 4096 : memref<8x256x384xf32>
    ```
  }];
  let arguments = (ins LLVM_DefaultPointer:$base, ConfinedAttr<I64Attr, [IntNonNegative]>:$offset);
  let results = (outs AnyStaticShapeMemRef:$memory);
  let assemblyFormat = "$base `+` $offset attr-dict `:` type($memory)";
}

def Kernel_GroupAxis : I32EnumAttr<"GroupAxis", "what a group is divided into", [
    I32EnumAttrCase<"Rows", 0, "rows">, I32EnumAttrCase<"Columns", 1, "columns">]> {
  let cppNamespace = "::boa::kernel";
}

def Kernel_GroupOp : Kernel_Op<"group", [SingleBlock, NoTerminator,
                                         RecursiveMemoryEffects]> {
  let summary = "ops that are computed together, part by part";
  let description = [{
    The ops of the region (linalg on static memrefs, and what else has loops) in
    order, as one piece of work for a target to emit. The parts of the group, of
    which `space` are the extents, are independent of one another:

    - `rows`: part r is iteration (r, ...) of each op. The leading dimensions of
      each are `space`, all parallel, and what two ops share and one writes both
      touch row by row. So a part may go through all ops before the next begins,
      and what they hand on stays in cache, in shared memory or in registers.
      Without dimensions there is one part: everything.
    - `columns`: part c is iteration (..., c) of each op, its other dimensions in
      order: sums over rows, each with one owner. No op touches what another writes.

    A temporary allocated in the region is the group's own.
    ```mlir
    kernel.group rows [2, 64] {
      %s = memref.alloc() : memref<2x64xf32>
      linalg.fill ins(%zero : f32) outs(%s : memref<2x64xf32>)
      linalg.generic {... ["parallel", "parallel", "reduction"]} ins(%x) outs(%s)
      linalg.generic {... ["parallel", "parallel", "parallel"]} ins(%x, %s) outs(%y)
    }
    ```
  }];
  let arguments = (ins Kernel_GroupAxis:$axis, DenseI64ArrayAttr:$space);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "$axis $space attr-dict-with-keyword $bodyRegion";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// How many parts there are.
    int64_t getCount();
    /// The iterations of the op that makes most of them, in all parts together.
    int64_t getWork();
  }];
}

def Kernel_ParallelOp : Kernel_Op<"parallel", [SingleBlock, NoTerminator,
                                               RecursiveMemoryEffects]> {
  let summary = "a loop over [0, count), run in disjoint ranges by the pool";
  let description = [{
    The region is given a range [begin, end). Ranges run in any order and at the
    same time, each of at least `grain` iterations unless it is the last.
    ```mlir
    kernel.parallel 2048 grain 8 {
    ^bb0(%begin: index, %end: index):
      ...
    }
    ```
  }];
  let arguments = (ins I64Attr:$count, I64Attr:$grain);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "$count `grain` $grain attr-dict-with-keyword $bodyRegion";
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "int64_t":$count, "int64_t":$grain)>];
  let extraClassDeclaration = [{
    ::mlir::Value getBegin() { return getBodyRegion().front().getArgument(0); }
    ::mlir::Value getEnd() { return getBodyRegion().front().getArgument(1); }
  }];
}

def Kernel_LaunchFuncOp : Kernel_Op<"launch_func"> {
  let summary = "enqueues a function of the device's module";
  let description = [{
    Its arguments are the addresses of `operands`, which may be parts of views. Launches and library calls of a kernel
    run in their order.
    ```mlir
    kernel.launch_func @cuda::@block_forward_launch0 grid [64, 1, 1] block [256, 1, 1] shared 0
        (%x, %y) : memref<2x32x64xf32>, memref<2x32x64xf32>
    ```
  }];
  let arguments = (ins SymbolRefAttr:$function, DenseI64ArrayAttr:$grid,
                       DenseI64ArrayAttr:$block, I64Attr:$shared_bytes,
                       Variadic<AnyStaticShapeMemRef>:$operands);
  let assemblyFormat = [{
    $function `grid` $grid `block` $block `shared` $shared_bytes
    `(` $operands `)` attr-dict (`:` type($operands)^)?
  }];
}

#endif // BOA_PASSES_KERNEL_OPS_TD
