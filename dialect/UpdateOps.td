//===- UpdateOps.td - The optimizer's updates and norms ----*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_UPDATE_OPS_TD
#define BOA_UPDATE_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Step phase
//===----------------------------------------------------------------------===//

def Boa_OptimizerUpdateOp : Boa_Op<"optimizer_update", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "one optimizer step on chunks of a group's entry";
  let description = [{
    Updates chunks [first, last) of entry `layer` of group G. Reads @gradients.G; reads
    and writes @weights.G and the storages of G with role `master` or `state`. Uses the step count and the
    learning rate of `step`. Does nothing if `step` is 0.
    ```mlir
    boa.optimizer_update @block[%l] chunks 0 to 12 step %step
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, Index:$layer, I64Attr:$first,
                       I64Attr:$last, Index:$step);
  let assemblyFormat = "$group `[` $layer `]` `chunks` $first `to` $last `step` $step attr-dict";
  let hasVerifier = 1;
}

def Boa_GradientNormOp : Boa_Op<"gradient_norm", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds one entry of @gradients.G to the global norm of this step";
  let arguments = (ins FlatSymbolRefAttr:$group, Index:$layer);
  let assemblyFormat = "$group `[` $layer `]` attr-dict";
}
def Boa_FinishNormOp : Boa_QueueOp<"finish_norm", "optimizer", [Boa_AccessOpInterface,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all gradients are in: fixes the clipping factor of `step`";
  let arguments = (ins Index:$step);
  let assemblyFormat = "$step attr-dict";
}

//===----------------------------------------------------------------------===//
// Storage phase
//===----------------------------------------------------------------------===//

def Boa_UpdateOp : Boa_QueueOp<"update", "optimizer", [AttrSizedOperandSegments,
    Boa_AccessOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the optimizer on one chunk, on the optimizer queue";
  let description = [{
    Each buffer belongs to the group's storage of that role, and holds the entry or the
    chunk. Weights are f32, or bf16 with the masters' lower halves (`low`, i16). The gradient
    is f32. `states` are all states of the group, in alphabetical order. On separate memories
    all buffers are in the memory of the optimizer: `update` of `boa.config @plan`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$group, Index:$chunk, Index:$step,
                       Arg<Boa_BufferType, "", [MemRead, MemWrite]>:$weights,
                       Arg<Boa_BufferType, "", [MemRead]>:$gradient,
                       Arg<Optional<Boa_BufferType>, "", [MemRead, MemWrite]>:$low,
                       Arg<Variadic<Boa_BufferType>, "", [MemRead, MemWrite]>:$states);
  let assemblyFormat = [{
    $group `chunk` $chunk `step` $step `weights` `(` $weights `:` type($weights) `)`
    `gradient` `(` $gradient `:` type($gradient) `)`
    (`low` `(` $low^ `:` custom<BufferType>(type($low)) `)`)?
    (`states` `(` $states^ `:` custom<BufferTypes>(type($states)) `)`)? attr-dict
  }];
}
def Boa_NormOp : Boa_QueueOp<"norm", "optimizer", [Boa_AccessOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite]>]> {
  let summary = "adds the squares of a gradient buffer to the global norm";
  let description = [{ Runs on the same memory as the updates. }];
  let arguments = (ins FlatSymbolRefAttr:$group,
                       Arg<Boa_BufferType, "", [MemRead]>:$gradient);
  let assemblyFormat = "$group `gradient` $gradient attr-dict `:` type($gradient)";
}

#endif // BOA_UPDATE_OPS_TD
