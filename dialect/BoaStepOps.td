//===- BoaStepOps.td - The step phase: loops over indexed storage -*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that cross layers, micro-batches or steps live in storages, indexed by
// (layer, micro_batch). This is scalar expansion: it makes loops distributable and
// interchangeable. Control is static: every bound is a constant. So a pass can
// enumerate the step exactly (passes/analysis/Enumeration.h) instead of approximating
// its dependences.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_STEP_OPS_TD
#define BOA_STEP_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Boa_StepOp : Boa_Op<"step", [Symbol, HasParent<"::mlir::ModuleOp">, IsolatedFromAbove,
                                 SingleBlock, NoTerminator, Boa_NamesArguments]> {
  let summary = "an entry point of the compiled program";
  let description = [{
    Its name is one of six. @step is one training step. @drain applies the delayed
    optimizer updates alone. @evaluate runs forward passes up to the loss, @predict one up
    to the logits. @prefill keeps keys and values of some positions of a text, and @generate
    computes the logits of one more.

    The block's arguments are `step`, counted from 1, and `pending`: the step whose
    delayed updates are outstanding, 0 for none. The delayed part of the optimizer
    crosses the back edge of the step loop as `pending`; @drain is its epilogue.

    `traffic` says how many bytes a run moves, by direction and role: the `first` and the
    `second` step of a training, and `each` later one. --boa-assign-buffers sets it.
    ```mlir
    boa.step @step(%step, %pending) traffic {
      first read weights 6639616
      each read gradients 1900544, weights 5718016
      each written gradients 1900544, weights 3796992
    } { ... }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::boa::EntryPoint getEntryPoint() { return *::boa::symbolizeEntryPoint(getSymName()); }
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::Value getStep() { return getBlock()->getArgument(0); }
    ::mlir::Value getPending() { return getBlock()->getArgument(1); }
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::boa::EntryPoint":$entry)>];
}

def Boa_LoopOp : Boa_Op<"loop", [SingleBlock, NoTerminator, AttrSizedOperandSegments,
                                 RecursiveMemoryEffects, Boa_NamesArguments]> {
  let summary = "a loop over layers, micro-batches or chunks";
  let description = [{
    The induction variable takes the values lower .. upper-1: ascending
    (`forward`), descending (`reverse`), or by turns (`snake`): descending if
    `parity` + `phase` is odd. In the vertical schedule the snake makes the last
    micro-batch of one layer the first of the next.
    ```mlir
    boa.loop layer %l = 0 to 6 forward {
      boa.loop micro_batch %m = 0 to 4 snake(%l + 1) { ... }
    }
    boa.loop chunk %c = 12 to 16 forward if %pending { ... }
    ```
    The guard is the `pending` of the entry point. A loop with a guard runs only if that
    is not 0: if updates of an earlier step are outstanding.
  }];
  let arguments = (ins Boa_Dimension:$dimension, I64Attr:$lower, I64Attr:$upper,
                       DefaultValuedAttr<Boa_LoopOrder, "LoopOrder::forward">:$order,
                       Optional<Index>:$parity,
                       DefaultValuedAttr<I64Attr, "0">:$phase,
                       Optional<Index>:$guard);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::BlockArgument getInductionVar() { return getBlock()->getArgument(0); }
    int64_t getTripCount() { return getUpper() - getLower(); }
    /// Whether it runs downward for this parity.
    bool isDescending(int64_t parity) {
      return getOrder() == ::boa::LoopOrder::snake ? (parity + int64_t(getPhase())) & 1
                                                   : getOrder() == ::boa::LoopOrder::reverse;
    }
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::boa::Dimension":$dimension, "int64_t":$lower,
                                 "int64_t":$upper,
                                 CArg<"LoopOrder", "LoopOrder::forward">:$order)>];
}

def Boa_ShiftOp : Boa_Op<"shift", [Pure, SameOperandsAndResultType, Boa_NamesResults]> {
  let summary = "an index plus a constant: `boa.shift %l, 1`";
  let arguments = (ins Index:$index, I64Attr:$by);
  let results = (outs Index:$result);
  let assemblyFormat = "$index `,` $by attr-dict";
}

def Boa_AtFirstOp : Boa_Op<"at_first", [Pure, Boa_NamesResults]> {
  let summary = "whether the loop of this induction variable is in its first iteration";
  let arguments = (ins Index:$index);
  let results = (outs I1:$result);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}
def Boa_AtLastOp : Boa_Op<"at_last", [Pure, Boa_NamesResults]> {
  let summary = "whether the loop of this induction variable is in its last iteration";
  let arguments = (ins Index:$index);
  let results = (outs I1:$result);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reads and writes of whole entries, as values
//===----------------------------------------------------------------------===//

def Boa_ReadOp : Boa_Op<"read", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface>,
    MemoryEffects<[MemRead]>, Boa_NamesResults]> {
  let summary = "the value of a storage's entry: `boa.read @checkpoints[%l, %m] : tensor<...>`";
  let arguments = (ins FlatSymbolRefAttr:$storage, Variadic<Index>:$indices);
  let results = (outs AnyStaticShapeTensor:$value);
  let assemblyFormat = "$storage `[` $indices `]` attr-dict `:` type($value)";
}
def Boa_WriteOp : Boa_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface>,
    MemoryEffects<[MemWrite]>]> {
  let summary = "sets a storage's entry";
  let arguments = (ins AnyStaticShapeTensor:$value, FlatSymbolRefAttr:$storage,
                       Variadic<Index>:$indices);
  let assemblyFormat = "$value `,` $storage `[` $indices `]` attr-dict `:` type($value)";
}
def Boa_AccumulateOp : Boa_Op<"accumulate", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds to a storage's entry: a reduction, free to be reordered";
  let description = [{
    If `initial` holds, the op sets the entry: it is the first contribution of a step.
    (Reordering changes rounding only.)
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, FlatSymbolRefAttr:$storage,
                       Variadic<Index>:$indices, I1:$initial);
  let assemblyFormat = [{
    $value `,` $storage `[` $indices `]` `initial` $initial attr-dict `:` type($value)
  }];
}

def Boa_CallOp : Boa_Op<"call", [MemoryEffects<[]>, Boa_NamesResults,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a stage's function on packed parameters";
  let description = [{
    Operands: the callee's activations in order, then one packed entry for each
    parameter group that it takes, in the order of their first appearance.
    Results: its activations, then one packed gradient for each group. A result marked
    `boa.sum` is the gradient of a side input: `boa.accumulate` adds it up. A result marked
    `boa.cache` is added to a cache in the same way: other positions than before.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def Boa_OptimizerUpdateOp : Boa_Op<"optimizer_update", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface>,
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
}

def Boa_GradientNormOp : Boa_Op<"gradient_norm", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds one entry of @gradients.G to the global norm of this step";
  let arguments = (ins FlatSymbolRefAttr:$group, Index:$layer);
  let assemblyFormat = "$group `[` $layer `]` attr-dict";
}
def Boa_FinishNormOp : Boa_Op<"finish_norm", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all gradients are in: fixes the clipping factor of `step`";
  let arguments = (ins Index:$step);
  let assemblyFormat = "$step attr-dict";
}

#endif // BOA_STEP_OPS_TD
