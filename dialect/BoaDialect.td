//===- BoaDialect.td - The dialect, its types and enums -----*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_DIALECT_TD
#define BOA_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"

def Boa_Dialect : Dialect {
  let name = "boa";
  let cppNamespace = "::boa";
  let summary = "A transformer, its training step, and where each byte of it lives";
  let description = [{
    One dialect in three phases. Each phase is closed by a verifier pass, so that
    a program can be read, written by hand and tested at any point.

    ```
      model    boa.config, boa.group, boa.input,     what is computed: one function
                 boa.stage + functions of tensor ops   per stage, pure tensor code
        |   --boa-differentiate, --boa-build-step
        v
      step     boa.step, boa.loop, boa.storage       in what order: loops over layer
                 boa.read / write / accumulate         and micro_batch around calls
                 boa.optimizer_update
        |   --boa-vertical-schedule, --boa-split-optimizer, --boa-insert-offload
        v
      storage  boa.prefetch / create / copy          where each byte is, and when it
                 boa.launch / update                   moves: buffers in spaces
                 boa.offload / release
    ```

    Attributes that later phases read off functions:

    - `boa.param = @params.group::@name` on an argument of a stage function: the
      parameter that it takes; on a result of a backward function: the gradient
      of that parameter.

    Attributes of an op in a stage's body say what the plan does with its results, as inner
    activations of a layer that saves what its backward function needs. A planner sets them
    before --boa-differentiate. They are no part of the computation.

    - `boa.name = "q"`: the name by which a plan finds them. Without it, that of the op: `gelu`.
    - `boa.activation = {save = false}`: the layer computes them again from others, which it
      saves or computes again in turn.
    - `boa.activation = {place = "host"}`: where they live, instead of where `plan.place.saved`
      says. They lie in a storage by themselves then, `@saved.block.q`.

    `boa.shared` on a `boa.linear` says that forward uses the result more than once. Such a
    product is never accumulated into an addend, also where backward has only one use of it:
    so both compute the same bits. --boa-differentiate sets it.

    The configuration stands first in the module, one setting a line: of the training
    in `boa.config @train` and `@plan`, of the machine in `@machine`. `runtime/abi/settings.def`
    is the table of all settings.

    Values are printed with names that say their meaning:

    | name | value |
    |---|---|
    | `%step`, `%pending` | the numbers of the step and of the pending step |
    | `%l`, `%m`, `%c` | the layer, micro-batch or chunk of a loop |
    | `%next`, `%previous` | an index shifted up or down |
    | `%begin`, `%end` | the first or last layer: `boa.at_first`, `boa.at_last` |
    | `%first`, `%last` | the same of micro-batches and chunks |
    | `%x`, `%y` | a checkpoint that is read, or written |
    | `%dy`, `%dx` | a boundary gradient that is read, or written |
    | `%w`, `%g`, `%low` | weights, gradients, lower halves of master weights |
    | `%momentum`, `%variance` | states of the optimizer, by their names |
    | `%w.c` | a buffer of single chunks |
    | `%w.embed`, `%x.4` | outside of the loop over layers: of a stage, of a layer |

    An argument of a stage's function is named after its parameter, or after the stage whose
    result it is.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Boa_Type<string name, string typeMnemonic> : TypeDef<Boa_Dialect, name> {
  let mnemonic = typeMnemonic;
}

class Boa_Enum<string name, string summary, list<string> words>
    : I32EnumAttr<name, summary, !foreach(i, !range(!size(words)), I32EnumAttrCase<words[i], i>)> {
  let cppNamespace = "::boa";
}

def Boa_Space : Boa_Enum<"Space", "a memory in which a buffer can be", ["device", "host"]>;

def Boa_Tier : Boa_Enum<"Tier", "where a chunk lives between uses", ["device", "host", "ssd"]>;

def Boa_Role : Boa_Enum<"Role", "the purpose of a storage", [
  "input",    // of the model, or the positions of tokens in their text
  "loss", "logits", "weights", "master", "state", "gradients", "checkpoints", "boundary_gradients",
  "saved", "loss_gradients",
  "cache",    // keys and values of earlier positions
  "prepared"  // weights in the form that a kernel asks for
]>;

def Boa_InputSource : Boa_Enum<"InputSource", "where a trainer has an input from", ["data", "seed"]>;

def Boa_EntryPoint : Boa_Enum<
    "EntryPoint", "a function of a compiled program that the trainer calls",
    ["step", "drain", "evaluate", "predict", "prefill", "generate"]>;

def Boa_StageFunction : Boa_Enum<"StageFunction", "the part of a stage that a function computes", [
  "forward", "backward", "forward_saving", "logits",
  "sum",            // of the gradients of a result that several arguments take
  "backward_saved", // takes what forward_saving saved, where only some layers do
  "prefill",        // of some positions at once, whose keys and values it keeps
  "generate"        // of one position
]>;

def Boa_Dimension : Boa_Enum<"Dimension", "what a loop counts", ["layer", "micro_batch", "chunk"]>;

def Boa_LoopOrder : Boa_Enum<"LoopOrder", "the order in which a loop runs",
                             ["forward", "reverse", "snake"]>;

def Boa_Init : Boa_Enum<"Init", "how a parameter begins", ["zeros", "ones", "normal", "uniform"]> {
  let genSpecializedAttr = 0; // Boa_InitAttr
}

class Boa_Attr<string name, string attrMnemonic> : AttrDef<Boa_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Boa_HomeAttr : Boa_Attr<"Home", "home"> {
  let summary = "the tier of some chunks of an entry";
  let description = [{
    An entry has a list of them, for its chunks in order: `on host 8, ssd` is 8
    chunks in host memory and the rest on SSD.
  }];
  let parameters = (ins "::boa::Tier":$tier, "int64_t":$chunks);
  let assemblyFormat = "`<` $tier `,` $chunks `>`";
}

def Boa_AdapterAttr : Boa_Attr<"Adapter", "adapter"> {
  let summary = "what is trained beside a frozen weight of linear";
  let description = [{
    With weight w, the model computes linear(x, w) + alpha / rank * linear(linear(x, a), b). With
    `rslora` it is alpha / sqrt(rank).
    `down` and `up` name the parameters a [rank, in] and b [out, rank] of the same stage.
    `transposed`: w is [out, in]. Ops compute it; this serves exports alone.
  }];
  let parameters = (ins "::mlir::StringAttr":$down, "::mlir::StringAttr":$up,
                        "::mlir::FloatAttr":$alpha, "bool":$transposed,
                        DefaultValuedParameter<"bool", "false">:$rslora);
  let assemblyFormat = "`<` $down `,` $up `,` $alpha `,` $transposed (`,` `rslora` $rslora^)? `>`";
}

def Boa_TakenAttr : Boa_Attr<"Taken", "taken"> {
  let summary = "what an argument of a stage's function takes";
  let description = [{
    An input of the model, by its name, or a result of an earlier stage, by its function and
    number. boa.stage prints `@tokens`, `@embed_forward`, `@embed_forward[1]`.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$from,
                        DefaultValuedParameter<"int64_t", "0">:$number);
  let assemblyFormat = "`<` $from (`,` $number^)? `>`";
  let builders = [AttrBuilderWithInferredContext<(ins "::mlir::FlatSymbolRefAttr":$from,
                                                      CArg<"int64_t", "0">:$number), [{
    return $_get(from.getContext(), from, number);
  }]>];
}

def Boa_EntryHomesAttr : Boa_Attr<"EntryHomes", "entry_homes"> {
  let summary = "where the chunks of some entries of a storage live";
  let description = [{
    A storage has a list of them, for its entries in order. Each reaches from the end of
    the one before to its own; an end of 0 is that of the storage. `on [0 to 8: host, 8 to 24:
    host 4, ssd]` is 8 entries in host memory, and 4 chunks of each of the others.
  }];
  let parameters = (ins "int64_t":$end, ArrayRefParameter<"::boa::HomeAttr">:$homes);
  let assemblyFormat = "`<` $end `,` `[` $homes `]` `>`";
}

def Boa_PoolAttr : Boa_Attr<"Pool", "pool"> {
  let summary = "slots of one size in one space, for a storage's buffers";
  let description = [{
    `device 3 x 20`: three slots of 20 chunks each. A buffer takes a slot of the
    smallest pool of its space that holds it. `device 3 x 20 shared 1`: all storages that
    name pool 1 share its three slots. Each slot has the size that the largest of them needs.
  }];
  let parameters = (ins "::boa::Space":$space, "int64_t":$slots, "int64_t":$chunks,
                        DefaultValuedParameter<"int64_t", "0">:$shared);
  let assemblyFormat = "$space $slots `x` $chunks (`shared` $shared^)?";
  let builders = [AttrBuilder<(ins "::boa::Space":$space, "int64_t":$slots, "int64_t":$chunks), [{
    return $_get($_ctxt, space, slots, chunks, 0);
  }]>];
}

/// Constants of compute ops stand in f64, and kernels compute with them in f32.
def Boa_NumberAttr : ConfinedAttr<F64Attr, [AttrConstraint<
    CPred<"::boa::IsFloat32(::llvm::cast<::mlir::FloatAttr>($_self).getValueAsDouble())">,
    "that f32 holds: 0, or between 1.18e-38 and 3.4e38">]>;

/// The number of layers of a stage or a group: as many as the language allows.
def Boa_RepeatAttr : ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<65536>]>;

def Boa_InitAttr : EnumAttr<Boa_Dialect, Boa_Init, "init">;

def Boa_HomesAttr
    : TypedArrayAttrBase<Boa_EntryHomesAttr, "homes of a storage's entries, in order">;
def Boa_TakesAttr
    : TypedArrayAttrBase<Boa_TakenAttr, "what the arguments of a stage's function take">;
def Boa_PoolsAttr : TypedArrayAttrBase<Boa_PoolAttr, "pools of slots">;

def Boa_BufferType : TypeDef<Boa_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "(some chunks of) a storage's entry in a memory";
  let description = [{
    A slot of the arena, or, where the chunks live in memory of that space, their
    home itself. A command that uses a buffer waits for the command that fills it.
  }];
  let parameters = (ins "::mlir::Type":$contents, "::boa::Space":$space);
  let assemblyFormat = "`<` $contents `,` $space `>`";
  let genVerifyDecl = 1;
}

/// Names its results, or the arguments of its region, when it is printed.
def Boa_NamesResults : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;
def Boa_NamesArguments
    : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

class Boa_Op<string mnemonic, list<Trait> traits = []>
    : Op<Boa_Dialect, mnemonic, traits>;

/// An op that runs on a queue (Queue in Boa.h). Boa_AccessOpInterface is among its traits.
class Boa_QueueOp<string mnemonic, string queue, list<Trait> traits, string methods = "">
    : Boa_Op<mnemonic, traits> {
  let extraClassDeclaration =
      "::boa::Queue getQueue() { return ::boa::Queue::" # queue # "; }\n" # methods;
}

#endif // BOA_DIALECT_TD
