//===- LoopOps.td - boa.loop and its indices ---------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_LOOP_OPS_TD
#define BOA_LOOP_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Boa_LoopOp : Boa_Op<"loop", [ParentOneOf<["StepOp", "LoopOp"]>, SingleBlock, NoTerminator,
                                 AttrSizedOperandSegments, RecursiveMemoryEffects,
                                 LoopLikeOpInterface, Boa_NamesArguments]> {
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
  let assemblyFormat = [{
    $dimension custom<Iterations>($body, $lower, $upper, $order, $parity, $phase, $guard)
    attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
    ::mlir::BlockArgument getInductionVar() { return getBlock()->getArgument(0); }
    int64_t getTripCount() { return getUpper() - getLower(); }
    ::llvm::SmallVector<::mlir::Region *> getLoopRegions() { return {&getBody()}; }
    /// The loop of an induction variable. Null for other values.
    static LoopOp of(::mlir::Value induction);
    /// Whether it is over chunks, and each iteration has a chunk, and buffers, to itself. All
    /// iterations may then run at once.
    bool canRunAsOne();
    /// Whether it runs downward for this parity.
    bool isDescending(int64_t parity) {
      return getOrder() == ::boa::LoopOrder::snake ? (parity + int64_t(getPhase())) & 1
                                                   : getOrder() == ::boa::LoopOrder::reverse;
    }
  }];
  let builders = [OpBuilder<(ins "::boa::Dimension":$dimension, "int64_t":$lower,
                                 "int64_t":$upper,
                                 CArg<"LoopOrder", "LoopOrder::forward">:$order), [{
    build($_builder, $_state, dimension, lower, upper, order, /*parity=*/{}, /*phase=*/0, {});
    $_state.regions.front()->emplaceBlock().addArgument(
        $_builder.getIndexType(), $_state.location);
  }]>];
}

def Boa_ShiftOp : Boa_Op<"shift", [Pure, SameOperandsAndResultType, Boa_NamesResults,
    DeclareOpInterfaceMethods<Boa_IndexOpInterface>]> {
  let summary = "an index plus a constant: `boa.shift %l, 1`";
  let arguments = (ins Index:$index, I64Attr:$by);
  let results = (outs Index:$result);
  let assemblyFormat = "$index `,` $by attr-dict";
  let hasVerifier = 1;
}

def Boa_AtFirstOp : Boa_Op<"at_first", [Pure, Boa_NamesResults,
    DeclareOpInterfaceMethods<Boa_IndexOpInterface>]> {
  let summary = "whether the loop of this induction variable is in its first iteration";
  let arguments = (ins Index:$index);
  let results = (outs I1:$result);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}
def Boa_AtLastOp : Boa_Op<"at_last", [Pure, Boa_NamesResults,
    DeclareOpInterfaceMethods<Boa_IndexOpInterface>]> {
  let summary = "whether the loop of this induction variable is in its last iteration";
  let arguments = (ins Index:$index);
  let results = (outs I1:$result);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}

#endif // BOA_LOOP_OPS_TD
