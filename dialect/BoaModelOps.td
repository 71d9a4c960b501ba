//===- BoaModelOps.td - The model phase: parameters and stages -*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_MODEL_OPS_TD
#define BOA_MODEL_OPS_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// As many as the language allows.
def Boa_RepeatAttr : ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<65536>]>;

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
    /// Among the parameters of its stage.
    int64_t getPlace();
    double getRateFactor();
    /// Where the optimizer's is `ofMatrices`.
    double getDecay(double ofMatrices);
  }];
}

def Boa_OptimizerOp : Boa_Op<"optimizer", [Symbol, HasParent<"::mlir::ModuleOp">,
                                           IsolatedFromAbove, Boa_NamesArguments]> {
  let summary = "how a step changes one element of a parameter and its states";
  let description = [{
    A function of scalars. Every target runs it on all elements (passes/kernels/UpdateBody.h).
    `prepare` runs on the host before an update. It takes the number of the step, from 1, and the
    hyperparameters, in f64. It yields scalars that are the same for all updates of a step, in f32. `update` takes the
    weight, the gradient (times the factor of clipping), the learning rate, the weight decay,
    the states and the scalars. It yields the new weight and the new states. All of these
    are f32; so is the master weight, where weights are stored as bf16.
    ```mlir
    boa.optimizer @sgd {momentum = 9.0e-1} states {momentum = f32} prepare {
    ^bb0(%t: f64, %momentum: f64):
      %decay = arith.truncf %momentum : f64 to f32
      boa.yield %decay : f32
    } update {
    ^bb0(%w: f32, %g: f32, %rate: f32, %weight_decay: f32, %m: f32, %decay: f32):
      ...
      boa.yield %next, %sum : f32, f32
    }
    ```
    Hyperparameters and states are in alphabetical order, there and in the regions. A state has
    a storage @STATE.GROUP for each group, with the role `state`. Its type is how it is stored:

    | type | stored as |
    |---|---|
    | `f32` | itself |
    | `bf16` | rounded at random, so that its mean is exact |
    | `si8` | a code of 8 bits, and a scale in f32 for each 256 elements: sign(q) (q / 127)^4 scale |
    | `ui8` | the same for values of at least 0: (max(q, 1) / 255)^4 scale |

    --boa-build-step makes the op of the settings, unless the module has one. Without a body it
    only declares the states: that is enough for all passes but code generation.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DictionaryAttr:$hyperparameters,
                       DictionaryAttr:$states);
  let regions = (region AnyRegion:$prepare, AnyRegion:$update);
  let assemblyFormat = [{
    $sym_name $hyperparameters `states` $states (`prepare` $prepare^ `update` $update)?
    attr-dict-with-keyword
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Names and types of the states, in order.
    ::llvm::SmallVector<std::pair<::llvm::StringRef, ::mlir::Type>> getStateTypes();
    /// The number of values that `prepare` yields.
    unsigned getScalarCount();
    bool hasBody() { return !getUpdate().empty(); }
  }];
}

def Boa_YieldOp : Boa_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"OptimizerOp">]> {
  let summary = "the results of a region of boa.optimizer";
  let arguments = (ins Variadic<F32>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def Boa_StageOp : Boa_Op<"stage", [HasParent<"::mlir::ModuleOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one stage of the model, in order; a repeated one is a layer";
  let description = [{
    Names the function that computes the stage. Stages run in the order in which
    they stand. The first takes token indices, each other the result of the one
    before it; the last also takes the targets and returns the loss (a scalar). Another
    stage takes the targets if it says `targets`. A stage that says `documents` takes, behind
    them, where the document of each token begins in its sequence, [micro_batch, context] i32.
    Then come the side inputs: results of the earlier stages that `takes` lists by
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
                       OptionalAttr<I64Attr>:$saves, UnitAttr:$targets, UnitAttr:$documents);
  let assemblyFormat = [{
    $callee (`repeat` $repeat^)? (`targets` $targets^)? (`documents` $documents^)?
    (`takes` $sides^)? (`saves` $saves^)? attr-dict
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

#endif // BOA_MODEL_OPS_TD
