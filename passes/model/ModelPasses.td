//===- ModelPasses.td - The passes of the model phase ------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes.td includes this file. The passes are in the order in which Pipeline.cpp runs them.
//
//===----------------------------------------------------------------------===//

def VerifyModel : BoaPass<"boa-verify-model"> {
  let summary = "closes the model phase";
  let description = [{
    Checks the inputs and the stages of the model:

    - A stage takes each input. One input is the tokens.
    - A later stage takes a result of each. The last takes the targets and returns a scalar loss.
    - One that repeats takes groups that repeat as often as it does, or not at all.
    - Bodies hold compute ops only. Embeddings look up tokens.
    - If the module has a configuration, inputs are those that a trainer has, with its micro-batch
      and context. Tables have its vocabulary. Attention is causal if the objective is next_token.
    - What the plan says of inner activations (`boa.activation` on an op) is of values that
      can be saved, and those of one name have one place.
    - The module has no storages or entry points: these belong to the next phase, and
      get their sizes from the model.

    Before:
    ```mlir before
    boa.input @tokens from data : tensor<2x4xi32>
    boa.stage @embed_forward(@tokens)
    boa.stage @head_forward(@embed_forward)
    func.func @embed_forward(%tokens: tensor<2x4xi32>) -> tensor<2x4xf32> {
      %x = arith.constant dense<0.0> : tensor<2x4xf32>
      return %x : tensor<2x4xf32>
    }
    func.func @head_forward(%x: tensor<2x4xf32>) -> tensor<f32> {
      %loss = arith.constant dense<0.0> : tensor<f32>
      return %loss : tensor<f32>
    }
    ```
    Refused:
    ```text after
    ...error: 'boa.stage' op expected the last stage to take the targets
    ```
  }];
}

def BlockVocabulary : BoaPass<"boa-block-vocabulary"> {
  let summary = "the matrices of embedding and head in blocks of tokens, which stream as layers do";
  let description = [{
    With `vocabulary_blocks` = N in the plan, a first stage that looks up its tokens by
    `embedding(w, tokens)` becomes three:

    - `@embed.begin_forward`: rows of zeros, and the tokens.
    - `@embed.blocks_forward`, N times: adds the rows whose tokens are in one block. It takes its
      entry of `@blocks.embed`, which holds the parts of `w`.
    - `@embed_forward`: what comes behind the embedding.

    A last stage that ends in `cross_entropy(linear(h, w), targets)` becomes four:

    - `@head_forward`: what comes before the product, up to `h`.
    - `@head.begin_forward`: sums over no tokens, and the targets.
    - `@head.blocks_forward`, N times: adds the logits of one block of tokens to the sums. It takes
      `h`, and its entry of `@blocks.head`, or of `@blocks.embed` if both are one matrix.
    - `@head.loss_forward`: the loss, from the sums behind the last block.

    Blocks carry tokens and targets, too: each numbers them from its own first one. Later passes see
    layers that repeat N times. So all micro-batches of a block come before the next block, and its
    gradient and its update are complete with its backward loop. The product is computed again in
    the backward pass, also where layers save their activations.

    Refused: two embeddings of the tokens, another end of the last stage, a number that does not divide
    the vocabulary, and a matrix that is used elsewhere, too.

    Before:
    ```mlir before block-vocabulary.mlir
    boa.group @params.embed repeat 1 {
      boa.param @table : tensor<16x8xf32> = "normal" 2.000000e-02
    ...
    boa.stage @embed_forward(@tokens)
    boa.stage @head_forward(@embed_forward, @targets)
    func.func @embed_forward(%tokens: ..., %table: ..., %p: ...) -> ... {
      %0 = boa.embedding %table, %tokens : ...
      %1 = boa.add %0, %p : ...
    ```
    After:
    ```mlir after
    boa.group @blocks.embed repeat 4 {
      boa.param @table : tensor<4x8xf32> = "normal" 2.000000e-02 split 0
    ...
    boa.stage @embed.begin_forward(@tokens)
    boa.stage @embed.blocks_forward(@embed.begin_forward, @embed.begin_forward[1]) repeat 4
    boa.stage @embed_forward(@embed.blocks_forward)
    boa.stage @head_forward(@embed_forward)
    boa.stage @head.begin_forward(@targets)
    boa.stage @head.blocks_forward(@head.begin_forward, @head.begin_forward[1], @head.begin_forward[2], @head_forward) repeat 4
    boa.stage @head.loss_forward(@head.blocks_forward, @head.blocks_forward[1], @targets)
    ...
    func.func @embed.blocks_forward(%rows: ..., %tokens: ..., %table: tensor<4x8xf32> {boa.param = @blocks.embed::@table}) -> ... {
      %0 = boa.embedding %table, %tokens partial : ...
      %1 = boa.add %rows, %0 : ...
      %2 = boa.rebase %tokens by 4 : ...
      return %1, %2 : ...
    ```
  }];
}

def MaskDocuments : BoaPass<"boa-mask-documents"> {
  let summary = "attention within documents, where several share a sequence";
  let description = [{
    With `document_mask` in the training, each stage that has attention takes the starts of
    documents, and its attention sees only keys of the row's own document.

    A text that is continued is one document: the pass is of trainings alone.

    Before:
    ```mlir before
    !x = tensor<1x4x8xf32>
    boa.config @train {document_mask = true}
    boa.input @tokens from data : tensor<1x4xi32>
    boa.input @targets from data : tensor<1x4xi32>
    boa.stage @embed_forward(@tokens)
    boa.stage @block_forward(@embed_forward) repeat 6
    boa.stage @head_forward(@block_forward, @targets)
    func.func @embed_forward(%tokens: tensor<1x4xi32>) -> !x {
      %x = arith.constant dense<0.0> : !x
      return %x : !x
    }
    func.func @block_forward(%x: !x) -> !x {
      %y, %lse = boa.attention %x, %x, %x heads 2, 2 causal : (!x, !x, !x) -> (!x, tensor<1x2x4xf32>)
      return %y : !x
    }
    func.func @head_forward(%x: !x, %targets: tensor<1x4xi32>) -> tensor<f32> {
      %loss = boa.cross_entropy %x, %targets : (!x, tensor<1x4xi32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
    After:
    ```mlir after
    boa.input @document_starts from data : tensor<1x4xi32>
    ...
    boa.stage @block_forward(@embed_forward, @document_starts) repeat 6
    ...
    func.func @block_forward(%x: tensor<1x4x8xf32>, %document_starts: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
      %y, %lse = boa.attention %x, %x, %x documents %document_starts heads 2, 2 causal : ...
    ```
  }];
}

def SeedDropout : BoaPass<"boa-seed-dropout"> {
  let summary = "keys for dropout, one for each token in each layer";
  let description = [{
    Each stage that has dropout takes keys from the trainer. They follow from the step, the sequence,
    the position and the layer, so no order of the step and no place changes what is dropped.

    An evaluation has keys of 0, and drops nothing. The pass is of trainings alone: without keys
    dropout does nothing.

    Before:
    ```mlir before
    !x = tensor<1x4x8xf32>
    boa.input @tokens from data : tensor<1x4xi32>
    boa.input @targets from data : tensor<1x4xi32>
    boa.stage @embed_forward(@tokens)
    boa.stage @block_forward(@embed_forward) repeat 6
    boa.stage @head_forward(@block_forward, @targets)
    func.func @embed_forward(%tokens: tensor<1x4xi32>) -> !x {
      %x = arith.constant dense<0.0> : !x
      return %x : !x
    }
    func.func @block_forward(%x: !x) -> !x {
      %y = boa.dropout %x by 0.25 site 0 : !x
      return %y : !x
    }
    func.func @head_forward(%x: !x, %targets: tensor<1x4xi32>) -> tensor<f32> {
      %loss = boa.cross_entropy %x, %targets : (!x, tensor<1x4xi32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
    After:
    ```mlir after
    boa.input @dropout_keys from seed : tensor<1x4xi32>
    ...
    boa.stage @block_forward(@embed_forward, @dropout_keys) repeat 6
    ...
    func.func @block_forward(%x: tensor<1x4x8xf32>, %dropout_keys: tensor<1x4xi32>) -> tensor<1x4x8xf32> {
      %y = boa.dropout %x keys %dropout_keys : tensor<1x4xi32> by 2.500000e-01 site 0 : tensor<1x4x8xf32>
    ```
  }];
}

def Differentiate : BoaPass<"boa-differentiate"> {
  let summary = "a backward function beside each forward one";
  let description = [{
    Reverse-mode differentiation of each stage's function through
    DifferentiableOpInterface. `@block_forward(x, params) -> y` gains
    `@block_backward(x, params, dy) -> (dx, dparams)`, which computes the forward
    values it needs again from the boundary activation `x`.

    A backward function takes a gradient for each result that has one, and returns one for each
    argument that has one. Integers have none. Layers that carry a result on write its gradient, and
    so does its first use, if that stage does not repeat. Those of other uses are marked `boa.sum`:
    they are added up, in f32 also where activations are bf16. Then `@NAME_sum(dy, sum) -> dy` adds up all of them;
    `@NAME.1_sum` for the second result. It returns zeros for a result of layers that no later
    stage takes.

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

    Before:
    ```mlir before Inputs/tiny.mlir
    func.func @block_forward(%x: ..., %w: ..., %b: ...) -> tensor<2x16x512xf32> {
      %0 = boa.linear %x, %w bias %b : ...
      %1 = boa.gelu %0 : ...
      %2 = boa.add %x, %1 : ...
      return %2 : ...
    ```
    After:
    ```mlir after
    func.func @block_backward(%x: ..., %w: ..., %b: ..., %dy: tensor<2x16x512xf32>) -> ... {
      %0 = boa.linear %x, %w bias %b : ...
      %1 = boa.gelu_grad %0, %dy : ...
      %2 = boa.linear %1, %w transpose : ...
      %3 = boa.linear_weight_grad %x, %1 : ...
      %4 = boa.sum_leading %1 : ...
      %5 = boa.add %dy, %2 : ...
      return %5, %3, %4 : ...
    ```
    After, with `recompute=false`:
    ```mlir after recompute=false
    func.func @block_forward_saving(%x: ..., %w: ..., %b: ...) -> (tensor<2x16x512xf32>, tensor<2x16x512xf32> {boa.saved}) {
      %0 = boa.linear %x, %w bias %b : ...
      %1 = boa.gelu %0 : ...
      %2 = boa.add %x, %1 : ...
      return %2, %0 : ...
    ...
    func.func @block_backward(%x: ..., %w: ..., %dy: ..., %saved: tensor<2x16x512xf32> {boa.saved}) -> ... {
      %0 = boa.gelu_grad %saved, %dy : ...
    ```
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

    Refuses attention that is not causal, and an op whose rows depend on one another.

    Before:
    ```mlir before
    !x = tensor<1x4x8xf32>
    boa.group @embed repeat 1 {
      boa.param @w : tensor<16x8xf32> = "ones"
    }
    boa.input @tokens from data : tensor<1x4xi32>
    boa.input @targets from data : tensor<1x4xi32>
    boa.stage @embed_forward(@tokens)
    boa.stage @block_forward(@embed_forward)
    boa.stage @head_forward(@block_forward, @targets)
    func.func @embed_forward(%tokens: tensor<1x4xi32>, %w: tensor<16x8xf32> {boa.param = @embed::@w}) -> !x {
      %x = boa.embedding %w, %tokens : (tensor<16x8xf32>, tensor<1x4xi32>) -> !x
      return %x : !x
    }
    func.func @block_forward(%x: !x) -> !x {
      %y, %lse = boa.attention %x, %x, %x heads 2, 2 causal : (!x, !x, !x) -> (!x, tensor<1x2x4xf32>)
      return %y : !x
    }
    func.func @head_forward(%x: !x, %targets: tensor<1x4xi32>) -> tensor<f32> {
      %loss = boa.cross_entropy %x, %targets : (!x, tensor<1x4xi32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
    After, with `prefill=2`:
    ```mlir after prefill=2
    func.func @block_generate(%x: tensor<1x1x8xf32>, %keys: tensor<1x4x8xf32> {boa.cache}, %values: tensor<1x4x8xf32> {boa.cache}, %positions: tensor<1x1xi32>) -> (tensor<1x1x8xf32>, tensor<1x4x8xf32> {boa.cache = 1 : i64}, tensor<1x4x8xf32> {boa.cache = 2 : i64}) {
      %y, %next_keys, %next_values = boa.cached_attention %x, %x, %x, %keys, %values at %positions heads 2, 2 : ...
      return %y, %next_keys, %next_values : ...
    }
    func.func @block_prefill(%x: tensor<1x2x8xf32>, ...
    ```
  }];
  let options = [Option<"prefill", "prefill", "int64_t", "0",
                        "positions of one @prefill; 0: as many as the runtime takes">];
}
