//===- StageOp.td - boa.stage ------------------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_STAGE_OP_TD
#define BOA_STAGE_OP_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"

def Boa_StageOp : Boa_Op<"stage", [HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one stage of the model, in order; a repeated one is a layer";
  let description = [{
    Names the function that computes the stage. Stages run in the order in which
    they stand. The first takes token indices, each other the result of the one
    before it; the last also takes the targets and returns the loss (a scalar). Another
    stage takes the targets if it says `targets`. A stage that says `documents` takes, behind
    them, where the document of each token begins in its sequence, [micro_batch, context] i32.
    One that says `dropout` takes, behind those, keys of the same type, from which random choices
    follow. Then come the side inputs: results of the earlier stages that `takes` lists by
    their functions. All layers of a repeated stage take the same side inputs.
    Arguments of the function after those are parameters, marked `boa.param`.
    Activations are [micro_batch, context, ...] with static sizes.

    A layer returns the type that it takes. It takes its own entry of each group that
    repeats as often as it does, and the only entry of a group that does not repeat.
    ```mlir
    boa.stage @block_forward repeat 6 takes [@embed_forward]
    func.func @block_forward(%x: tensor<8x256x384xf32>, %embed: tensor<8x256x384xf32>,
                             %w: tensor<384xf32> {boa.param = @params.block::@ln1_w}, ...)
        -> tensor<8x256x384xf32> { ... }
    ```
    Stage NAME has the function @NAME_forward and the group @params.NAME (or
    @NAME, in IR written by hand).

    `saves 8`, set by --boa-differentiate: the last eight layers save what their backward
    functions need, and the layers before compute it again. Without it all layers do the same.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       DefaultValuedAttr<Boa_RepeatAttr, "1">:$repeat,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$sides,
                       OptionalAttr<I64Attr>:$saves, UnitAttr:$targets, UnitAttr:$documents,
                       UnitAttr:$dropout);
  let assemblyFormat = [{
    $callee (`repeat` $repeat^)? (`targets` $targets^)? (`documents` $documents^)?
    (`dropout` $dropout^)? (`takes` $sides^)? (`saves` $saves^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$callee, "uint64_t":$repeat,
                                 CArg<"::llvm::ArrayRef<::mlir::Attribute>", "{}">:$sides)>];
  let extraClassDeclaration = [{
    /// NAME, by which its other functions and its group are found.
    ::llvm::StringRef getStageName();
    /// The names of the stages whose results are its side inputs.
    ::llvm::SmallVector<::llvm::StringRef> getSideNames();
  }];
}

#endif // BOA_STAGE_OP_TD
