//===- StepOp.td - boa.step --------------------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_STEP_OP_TD
#define BOA_STEP_OP_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

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
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<DictionaryAttr>:$traffic);
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
  let builders = [OpBuilder<(ins "::boa::EntryPoint":$entry), [{
    build($_builder, $_state, ::boa::stringifyEntryPoint(entry),
          ::mlir::DictionaryAttr());
    const ::mlir::Type index = $_builder.getIndexType();
    $_state.regions.front()->emplaceBlock().addArguments(
        {index, index}, {$_state.location, $_state.location});
  }]>];
}

#endif // BOA_STEP_OP_TD
