//===- StageOp.td - boa.input, boa.stage -------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_STAGE_OP_TD
#define BOA_STAGE_OP_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"

def Boa_InputOp : Boa_Op<"input", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "an input of the model, which a trainer fills in for each step";
  let description = [{
    ```mlir
    boa.input @tokens from data : tensor<8x256xi32>
    boa.input @dropout_keys from seed : tensor<8x256xi32>
    ```
    The type is that of one micro-batch. An input from `data` has an entry for each micro-batch. One
    from `seed` has an entry for each layer that takes any input from `seed`, too: it follows from
    the seed, the step and the layer. Later phases store it in `@input.NAME`.

    Ops know some inputs by name: `tokens` and `targets`, `document_starts` (where the document of
    each token begins in its sequence) and `dropout_keys` (from which random choices follow).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Boa_InputSource:$source,
                       TypeAttrOf<AnyStaticShapeTensor>:$type);
  let assemblyFormat = "$sym_name `from` $source `:` $type attr-dict";
}

def Boa_StageOp : Boa_Op<"stage", [HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one stage of the model, in order; a repeated one is a layer";
  let description = [{
    Names the function that computes the stage, and what each of its arguments takes: an input of
    the model, or a result of an earlier stage. Arguments behind those are parameters, marked
    `boa.param`. A function takes and returns any number of tensors of static shape. The last stage
    takes `@targets` and returns the loss, a scalar.

    The first arguments of a layer are carried, as many as it has results: the first layer
    takes results of stages there, each later one the results of the layer before. All layers take the
    same for the other arguments. A layer takes its own entry of each group that repeats as
    often as it does, and the only entry of a group that does not repeat.
    ```mlir
    boa.stage @block_forward(@embed_forward, @embed_forward[1]) repeat 6
    func.func @block_forward(%x: tensor<8x256x384xf32>, %mask: tensor<8x256xi32>,
                             %w: tensor<384xf32> {boa.param = @params.block::@ln1_w}, ...)
        -> tensor<8x256x384xf32> { ... }
    ```
    Here `%x` is carried. Stage NAME has the function @NAME_forward and the group @params.NAME (or
    @NAME, in IR written by hand).

    A gradient flows to each result of floating-point numbers that depends on a trained parameter.
    If several arguments take a result, its gradient is the sum of theirs.

    `saves 8`, set by --boa-differentiate: the last eight layers save what their backward
    functions need, and the layers before compute it again. Without it all layers do the same.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Boa_TakesAttr:$takes,
                       DefaultValuedAttr<Boa_RepeatAttr, "1">:$repeat,
                       OptionalAttr<I64Attr>:$saves);
  let assemblyFormat = [{
    $callee `` `(` custom<Takes>($takes) (`repeat` $repeat^)? (`saves` $saves^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$callee,
                                 "::llvm::ArrayRef<::boa::TakenAttr>":$takes,
                                 CArg<"uint64_t", "1">:$repeat)>];
  let extraClassDeclaration = [{
    /// The input that an argument takes; null if it takes a result of a stage.
    InputOp getInput(::boa::TakenAttr taken);
    /// NAME, by which its other functions and its group are found.
    ::llvm::StringRef getStageName();
    ::llvm::SmallVector<::boa::TakenAttr> getTaken() {
      return ::llvm::to_vector(getTakes().getAsRange<::boa::TakenAttr>());
    }
    void setTaken(::llvm::ArrayRef<::boa::TakenAttr> takes) {
      ::llvm::SmallVector<::mlir::Attribute> list(takes.begin(), takes.end());
      setTakesAttr(::mlir::ArrayAttr::get(getContext(), list));
    }
  }];
}

#endif // BOA_STAGE_OP_TD
