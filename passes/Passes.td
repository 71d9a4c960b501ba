//===- Passes.td - The passes of the schedule ---------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which the pipeline runs them. (The passes that turn compute
// bodies into code are in KernelPasses.td.)
//
//===----------------------------------------------------------------------===//
include "mlir/Pass/PassBase.td"

class BoaPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::boa::BoaDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// Model phase
//===----------------------------------------------------------------------===//

def VerifyModel : BoaPass<"boa-verify-model"> {
  let summary = "closes the model phase";
  let description = [{
    Checks the stages of the model:

    - They form a chain: each takes the result of the one before. The first takes
      tokens, the last returns a scalar loss. Side inputs are results of earlier stages.
    - One that repeats returns the type that it takes, and takes groups that repeat as
      often as it does, or not at all.
    - Bodies hold compute ops only. Embeddings look up the tokens of the first stage.
    - If the module has a configuration, the functions have its micro-batch,
      context and vocabulary. Attention is causal if the objective is next_token.
    - What the plan says of inner activations (`boa.activation` on an op) is of values that
      can be saved, and those of one name have one place.
    - The module has no storages or entry points: these belong to the next phase, and
      get their sizes from the model.
  }];
}

def BlockVocabulary : BoaPass<"boa-block-vocabulary"> {
  let summary = "the matrices of embedding and head in blocks of tokens, which stream as layers do";
  let description = [{
    With `vocabulary_blocks` = N in the plan, a first stage that looks up its tokens by
    `embedding(w, tokens)` becomes three:

    - `@embed.begin_forward`: rows of zeros, and the tokens.
    - `@embed.blocks_forward`, N times: the rows whose tokens are in one block. It takes its entry of
      `@blocks.embed`, which holds the parts of `w`.
    - `@embed_forward`: what comes behind the embedding.

    A last stage that ends in `cross_entropy(linear(h, w), targets)` becomes four:

    - `@head_forward`: what comes before the product, up to `h`.
    - `@head.begin_forward`: sums over no tokens, from the targets.
    - `@head.blocks_forward`, N times: adds the logits of one block of tokens to the sums. It takes
      `h` as a side input, and its entry of `@blocks.head`, or of `@blocks.embed` if both are one matrix.
    - `@head.loss_forward`: the loss, from the sums behind the last block.

    Later passes see layers that repeat N times. So all micro-batches of a block come before the
    next block, and its gradient and its update are complete with its backward loop. The product
    is computed again in the backward pass, also where layers save their activations.

    Refused: another use of the tokens, another end of the last stage, a number that does not divide
    the vocabulary, and a matrix that is used elsewhere, too.
  }];
}

def MaskDocuments : BoaPass<"boa-mask-documents"> {
  let summary = "attention within documents, where several share a sequence";
  let description = [{
    With `document_mask` in the training, each stage that has attention takes the starts of
    documents, and its attention sees only keys of the row's own document:

    ```mlir
    boa.stage @block_forward repeat 6 documents
    func.func @block_forward(%x: tensor<8x256x384xf32>, %document_starts: tensor<8x256xi32>, ...) {
      %y, %lse = boa.attention %q, %k, %v documents %document_starts heads 6, 6 causal ...
    ```
    A text that is continued is one document: the pass is of trainings alone.
  }];
}

def SeedDropout : BoaPass<"boa-seed-dropout"> {
  let summary = "keys for dropout, one for each token in each layer";
  let description = [{
    Each stage that has dropout takes keys from the trainer. They follow from the step, the sequence,
    the position and the layer, so no order of the step and no place changes what is dropped:

    ```mlir
    boa.stage @block_forward repeat 6 dropout
    func.func @block_forward(%x: tensor<8x256x384xf32>, %dropout_keys: tensor<8x256xi32>, ...) {
      %d = boa.dropout %x keys %dropout_keys : tensor<8x256xi32> by 0.1 site 0 ...
    ```
    An evaluation has keys of 0, and drops nothing. The pass is of trainings alone: without keys
    dropout does nothing.
  }];
}

def Differentiate : BoaPass<"boa-differentiate"> {
  let summary = "a backward function beside each forward one";
  let description = [{
    Reverse-mode differentiation of each stage's function through
    DifferentiableOpInterface. `@block_forward(x, params) -> y` gains
    `@block_backward(x, params, dy) -> (dx, dparams)`, which computes the forward
    values it needs again from the boundary activation `x`.

    The gradient of a side input is marked `boa.sum`: those of all layers and stages are
    added up, in f32 also where activations are bf16. `@NAME_sum(dy, sum) -> dy` adds that
    sum to the gradient that the next stage gives.

    The plan says whether to recompute (`recompute` in `boa.config @plan`); the option
    wins over it. Without recomputing the pass also makes `@block_forward_saving(x, params) ->
    (y, saved)`, and the backward function takes `saved`: a tensor for each value. A
    value that costs nothing is computed again all the same: a split, a cast that
    widens, a parameter that is rounded. So is the result of an op with
    `boa.activation = {save = false}`: what it is computed from is saved, or computed again
    in turn. A value whose `boa.activation` has a place is marked `boa.saved = "NAME"` and
    `boa.place`, for a storage of its own.

    Both functions compute the same bits, whatever is saved. So an addend that only its sum
    uses is not saved: the sum is, by the addend's plan. And a product that forward uses more
    than once is marked `boa.shared`, since backward may have only one of these uses.

    Of a stage of which only the last layers save (`keep` in the plan), the pass makes both
    backward functions; `@block_backward_saved` is the one that takes `saved`. Then
    `boa.stage` says how many layers save.

    The last stage's backward function contains its forward pass and returns the loss,
    too. Its `dloss` is the micro-batch's share of the step's counted targets: then the
    gradients of the micro-batches add up to the gradient of the mean over the step. A
    gradient that is summed over rows stays f32 up to its parameter, even if activations
    are bf16.

    Frozen parameters get no gradient. Stages before the first one that takes a trained
    parameter get no backward function.
  }];
  let options = [Option<"recompute", "recompute", "bool", "",
                        "compute a layer's inner activations again in backward; absent: as "
                        "the plan says">];
}

def CacheAttention : BoaPass<"boa-cache-attention"> {
  let summary = "functions of some positions of a text, with a cache of keys and values";
  let description = [{
    Puts @NAME_prefill, of many positions, and @NAME_generate, of one, beside each
    stage's function. The last stage has the second alone, which gives the logits. Attention takes
    keys and values of earlier positions from caches, and adds its own.

    ```mlir
    func.func @block_generate(%x: tensor<1x1x384xf32>, %w: ... {boa.param = ...},
        %positions: tensor<1x1xi32>, %cache: tensor<1x256x384xf32> {boa.cache}, ...)
        -> (tensor<1x1x384xf32>, tensor<1x256x384xf32> {boa.cache = 3 : i64}, ...)
    ```
    Refuses attention that is not causal, and an op whose rows depend on one another.
  }];
  let options = [Option<"prefill", "prefill", "int64_t", "0",
                        "positions of one @prefill; 0: as many as the runtime takes">];
  let dependentDialects = ["::boa::BoaDialect", "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// Step phase
//===----------------------------------------------------------------------===//

def BuildStep : BoaPass<"boa-build-step"> {
  let summary = "the step as a loop nest in horizontal order";
  let description = [{
    Declares the storages and builds the entry points @step and @evaluate in the
    plain order: micro-batches outside, layers inside, the optimizer at the end.

    ```mlir
    boa.step @step(%step, %pending) {
      boa.loop micro_batch %m = 0 to 4 forward {
        ... embed ...
        boa.loop layer %l = 0 to 6 forward {
          %x = boa.read @checkpoints[%l, %m]
          %w = boa.read @weights.block[%l]
          %y = boa.call @block_forward(%x, %w)
          boa.write %y, @checkpoints[%l + 1, %m]
        }
        ... head, backward ...
      }
      boa.loop layer %l = 0 to 6 forward { boa.optimizer_update @block[%l] ... }
    }
    ```
    Instances of stages whose results have one type, one after another, share a storage of
    checkpoints. Where types differ there are several: `@checkpoints.embed`. Gradients of
    side inputs are accumulated in `@boundary_gradients.NAME.sum`. The first contribution
    in program order sets the entry. What layers save is in `@saved.NAME`, values with a
    place of their own in `@saved.NAME.VALUE`. A frozen group has a storage of weights alone, and no
    update.

    With `predict` it builds @predict instead: one forward pass that leaves the
    logits in a storage.
  }];
  let options = [Option<"predict", "predict", "bool", "false",
                        "build the entry point that leaves logits, and no other">];
  let dependentDialects = ["::boa::BoaDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect", "::mlir::math::MathDialect"];
}

def BuildGeneration : BoaPass<"boa-build-generation"> {
  let summary = "entry points that continue a text, with a cache of keys and values";
  let description = [{
    Builds @prefill and @generate from the functions of --boa-cache-attention. Each reads the
    tokens and positions that the caller brings, and adds their keys and values to the caches:

    ```mlir
    boa.storage @cache.block[6] : tensor<65536xf32> on device role cache
    boa.step @generate(%step, %pending) {
      ... embed ...
      boa.loop layer %l = 0 to 6 forward {
        %x = boa.read @checkpoints.generate[%l]
        %positions = boa.read @positions.generate[%c0]
        %w = boa.read @weights.block[%l]
        %y, %cache = boa.call @block_generate(%x, %positions, %w)
        boa.write %y, @checkpoints.generate[%l + 1]
        boa.accumulate %cache, @cache.block[%l] initial %false
      }
      ... head, to @logits ...
    }
    ```
  }];
  let dependentDialects = ["::boa::BoaDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

def VerticalSchedule : BoaPass<"boa-vertical-schedule"> {
  let summary = "all micro-batches of a layer before the next layer";
  let description = [{
    Distributes the micro_batch loop over the statements of its body and
    interchanges it with the layer loops. Then every other nest runs its
    micro-batches in reverse (the snake): the last micro-batch of one layer is the
    first of the next. Does nothing if `schedule` in `boa.config @plan` is horizontal.
    The option overrides `snake` in `boa.config @plan`, which turns the snake off.

    Legality is decided exactly. Control is static, so the pass enumerates the program
    before and after. Every read must see the same write, and the last write of every
    entry must be the same, since the entry may be read after the step. Otherwise the
    pass refuses and names the dependence. Accumulations may be reordered: that
    changes rounding, not the sum.
  }];
  let options = [Option<"snake", "snake", "bool", "",
                        "alternate the direction; absent: as the plan says">];
}

def SplitOptimizer : BoaPass<"boa-split-optimizer"> {
  let summary = "fuses the optimizer with backward and splits it across the step boundary";
  let description = [{
    The update of a group's entry moves to where its gradient is complete. A share
    `delay` of its chunks moves further, across the back edge of the step loop, to
    the first use of the weights in the next step. There it applies the step count and
    the learning rate of the step that made the gradient (`%pending`). The entry point
    @drain is the epilogue. `boa.config @plan` has the delay; the option wins over it.

    Refused with 0 < delay < 1 under global-norm clipping and under nonfinite =
    skip, since the head of the update would come before all gradients are in.
  }];
  let options = [Option<"delay", "delay", "double", "",
                        "share in [0, 1]; absent: as the plan says">];
}

def ContractStorage : BoaPass<"boa-contract-storage"> {
  let summary = "one entry for all micro-batches, if they need it one after another";
  let description = [{
    Classic array contraction. Each micro-batch has its own entry of activations and their
    gradients, so that the order of loops is free. Once the order is fixed, an entry may
    be needed by one micro-batch at a time, as in the horizontal order. Then all share it:

    ```mlir
    boa.storage @checkpoints[7, 4] : ...     =>  boa.storage @checkpoints[7, 1] : ...
    boa.read @checkpoints[%l, %m]                boa.read @checkpoints[%l, %c0]
    ```
    Legal if each read sees the write of its own micro-batch, and no other micro-batch
    writes the entry in between, in every entry point. The pass enumerates them, and
    compares what the program computes before and after. Storages that the trainer fills
    or reads keep their entries.
  }];
}

def VerifyStep : BoaPass<"boa-verify-step"> {
  let summary = "closes the step phase: indices in bounds, every read after its write";
}

//===----------------------------------------------------------------------===//
// Storage phase
//===----------------------------------------------------------------------===//

def InsertOffload : BoaPass<"boa-insert-offload"> {
  let summary = "naive, correct prefetch, offload and release at each use";
  let description = [{
    ```mlir
    %w = boa.read @weights.block[%l]          %w = boa.prefetch @weights.block[%l]
    %y = boa.call @block_forward(%x, %w)  =>  %y = boa.create @checkpoints[%l1, %m]
    boa.write %y, @checkpoints[%l1, %m]       boa.launch @block_forward reads(%x, %w) writes(%y)
                                              boa.offload %y, @checkpoints[%l1, %m]
                                              boa.release %y
    ```
    An optimizer update becomes a loop over chunks. Kernels take buffers on the device.
    Updates and norms run where `update` in `boa.config @plan` says, and take buffers
    there. Homes come from `place` in `boa.config @plan`: numbers of layers, then shares
    of the layers behind them, rounded to whole chunks. Where an entry is one chunk, a
    share is of the entries of each layer. A storage with `boa.place` has that place
    instead of its role's.
  }];
}

def HoistPrefetch : BoaPass<"boa-hoist-prefetch"> {
  let summary = "transfers that do not depend on a loop leave it; prefetches move up";
  let description = [{
    A prefetch whose entry is the same in every iteration moves before the loop, and
    its offload and release move behind it. In the vertical order the weights of a
    layer then move once for all micro-batches. Next, each prefetch moves up in its
    block, until it meets an offload of the same storage.

    A move that would change the result of the program is not made. A remark reports it.

    A buffer of a storage in `stream` does not leave a loop in which kernels, updates or norms of
    others run. Its prefetches do not move up.
  }];
  let options = [
    ListOption<"stream", "stream", "std::string",
               "storages whose buffers are not held while others compute">,
  ];
}

def ElideTransfers : BoaPass<"boa-elide-transfers"> {
  let summary = "drops transfers of data that is already in memory";
  let description = [{
    If a buffer of an entry is live anyway, other accesses to the entry in the same
    block use that buffer. So the optimizer takes the gradients and weights of the
    backward pass that has just ended. If the buffer is in the other memory, an access
    that only reads copies from it.

    Sharing that would change the result of the program is not done. A remark reports it.

    Of a storage in `stream`, accesses do not share a buffer if others compute between them.
  }];
  let options = [
    ListOption<"stream", "stream", "std::string",
               "storages whose buffers are not held while others compute">,
  ];
}

def RetainBuffers : BoaPass<"boa-retain-buffers"> {
  let summary = "keeps a buffer that is used again at once";
  let description = [{
    If the next use of an entry follows at once, its buffer is retained instead of
    released. This holds for the boundary activation at a turn of the snake, for the last
    layer's weights between forward and backward, and for the first layer's between two
    steps. A buffer is not retained if a chunk of its entry is written in between, or if
    it holds data that was never offloaded.

    The storages in `stream` count as one with others of their role, as the entries of layers do.
  }];
  let options = [
    ListOption<"stream", "stream", "std::string",
               "storages whose buffers are not held while others compute">,
  ];
}

def ElideOffloads : BoaPass<"boa-elide-offloads"> {
  let summary = "drops offloads that nothing reads";
  let description = [{
    Drops an offload if its data is overwritten before it is read, or narrows it to the
    chunks that are read. Trained state outlives the program: its offloads stay.
  }];
}

def PlaceWeights : BoaPass<"boa-place-weights"> {
  let summary = "keeps the weights in memory that fit, to continue a text";
  let description = [{
    Each token takes all weights once. So any byte of weights that stays in memory saves one
    byte of reading for each token. First come weights that are there once, then as many layers
    as fit beside one entry that is read ahead. They lie evenly among those on SSD:

    ```mlir
    boa.storage @weights.block[6] ... on [0 to 1: ssd, 1 to 2: device, 2 to 3: ssd, ...
    ```
    Without a limit on memory, it does nothing.
  }];
}

def AssignBuffers : BoaPass<"boa-assign-buffers"> {
  let summary = "static slots: how many of each storage the arena holds";
  let description = [{
    Enumerates the program and counts the slots that are live at once, for each size and
    space. Adds slots to look ahead (`prefetch`) as far as the memory limits allow. Where
    the slots that are live do not fit, storages whose buffers are not live at the same time
    share slots, those first that save most memory. Refuses a program that cannot fit, with
    the arithmetic.

    If device and host are one memory, their limits add up; a limit for only one of them
    is the limit of all memory. If they are two memories, each has its own limit, and a
    transfer between SSD and device also takes a slot of the host. The workspace of
    kernels and their tables (`boa.constants`) are in the device's memory.
  }];
}

def VerifyStorage : BoaPass<"boa-verify-storage"> {
  let summary = "closes the storage phase";
  let description = [{
    Enumerates the runs of a trainer, with @step until it is steady, and checks:

    - Every buffer is released exactly once and not used afterwards. The next prefetch
      of its chunks takes every retained copy.
    - No more slots are live than were assigned.
    - Every chunk that is read was written before, or existed before the step.
    - A buffer is offloaded to its own storage.
    - No kernel writes memory that another of its operands reads.
    - Updates take weights, gradient and moments of one layer, and all moments of the
      optimizer.
    - If the memories are two, kernels take buffers on the device and updates on the host.
  }];
}

//===----------------------------------------------------------------------===//
// To code
//===----------------------------------------------------------------------===//

def OutlineKernels : BoaPass<"boa-outline-kernels"> {
  let summary = "stage functions as kernels on packed buffers";
  let description = [{
    Makes a `boa.kernel` of each launched function. Gives its arguments and results their places:
    `boa.buffer` and `boa.offset`. Turns gradients into accumulators: arguments tied to results.
    Widens weights stored as bf16. Adds up what its ops cost. All layers share one kernel.
  }];
}

def ConvertBoaToRuntime : BoaPass<"convert-boa-to-runtime"> {
  let summary = "entry points to functions that call the runtime's C ABI";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}
