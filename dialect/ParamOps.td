//===- ParamOps.td - Parameters and their groups -----------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PARAM_OPS_TD
#define BOA_PARAM_OPS_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def Boa_GroupOp : Boa_Op<"group", [Symbol, SymbolTable, NoTerminator,
                                   SingleBlock, HasParent<"::mlir::ModuleOp">]> {
  let summary = "parameters that are stored, moved and updated together";
  let description = [{
    The parameters of one stage, or of one layer of a repeated stage: then there
    are `repeat` entries of the same layout. They are packed in one entry, each
    aligned to 64 bytes, so that a layer moves in one large transfer.
    ```mlir
    boa.group @params.block repeat 6 {
      boa.param @ln1_w : tensor<384xf32> = "ones"
      boa.param @qkv_w : tensor<384x1152xf32> = "normal" 2.0e-02
    }
    ```
    A frontend puts `params.` before the name that a user gave, so that it cannot meet a
    symbol of the compiler. The prefix is no part of the name.

    The parameters of a stage that are not trained are in a group by itself. They have only
    weights: no gradient, no lower halves, no states.
    ```mlir
    boa.group @frozen.block repeat 6 frozen {
      boa.param @qkv_w : tensor<384x1152xf32> = "normal" 2.0e-02 number 1
    }
    ```

    Entries may be parts of the same parameters, which stream one after another. A file, a state
    and a user know each parameter as a whole. Such a group is @blocks.NAME, or
    @frozen.blocks.NAME: --boa-block-vocabulary makes it.
    ```mlir
    boa.group @blocks.head repeat 8 {
      boa.param @out_w : tensor<384x32xf32> = "normal" 2.0e-02 number 1 split 1
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Boa_RepeatAttr:$repeat, UnitAttr:$frozen);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `repeat` $repeat (`frozen` $frozen^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Element offset of a parameter in the packed entry; -1 if there is none.
    int64_t getOffset(::llvm::StringRef param);
    /// Elements of an entry, without and with padding to whole chunks.
    int64_t getElements();
    int64_t getPaddedElements() { return getChunks() * getChunkElements(); }
    /// An entry is divided into equal chunks. The optimizer streams chunks, and the
    /// delay counts them. There are up to 16; more if a chunk would exceed 2 Mi
    /// elements, fewer if it would fall under 4096. Each holds some of the parameters:
    /// only the last may end in padding. Their number depends on the parameters alone,
    /// and is the same for f32 and bf16.
    int64_t getChunks();
    int64_t getChunkElements();
  }];
}

def Boa_ParamOp : Boa_Op<"param", [Symbol, HasParent<"GroupOp">]> {
  let summary = "a tensor of the model, how it is initialised and trained";
  let description = [{
    `init` is "zeros", "ones", "normal" (deviation `scale`) or "uniform" (half
    width `scale`). It has between 1 and 2^40 elements; gradients and updates are
    in f32, too, whatever the type in which weights are stored.

    `number` is its place among all parameters of its stage, if another than in the group:
    initial values follow from it. `lr_scale` is a factor of the learning rate. `weight_decay`
    is its own; without it, matrices have that of the optimizer, and vectors none.

    `external` is the name of its tensor in a folder of Hugging Face. In a layer that repeats,
    `*` is the number of the layer. The name is no part of the computation. `adapter` names
    the parameters that an export adds to it.

    With `split`, the entries of the group are parts of one parameter, in order along that
    dimension. The type is that of a part (boa.group).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<StaticShapeTensorOf<[F32]>>:$type, Boa_InitAttr:$init,
                       DefaultValuedAttr<F64Attr, "0.0">:$scale, OptionalAttr<I64Attr>:$number,
                       OptionalAttr<F64Attr>:$lr_scale, OptionalAttr<F64Attr>:$weight_decay,
                       OptionalAttr<StrAttr>:$external, OptionalAttr<Boa_AdapterAttr>:$adapter,
                       OptionalAttr<I64Attr>:$split);
  let assemblyFormat = [{
    $sym_name `:` $type `=` custom<Init>($init) ($scale^)? (`number` $number^)?
    (`lr_scale` $lr_scale^)? (`weight_decay` $weight_decay^)? (`external` $external^)?
    (`adapter` $adapter^)? (`split` $split^)? attr-dict
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::RankedTensorType":$type,
                                 "Init":$init, "double":$scale)>];
  let extraClassDeclaration = [{
    /// The place of the parameter among those of its stage.
    int64_t getPlace();
    double getRateFactor();
    /// The decay of the parameter, if that of the optimizer is `ofMatrices`.
    double getDecay(double ofMatrices);
  }];
}

#endif // BOA_PARAM_OPS_TD
