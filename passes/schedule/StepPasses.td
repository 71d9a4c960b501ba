//===- StepPasses.td - The passes of the step phase --------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes.td includes this file. The passes are in the order in which Pipeline.cpp runs them.
//
//===----------------------------------------------------------------------===//

def BuildStep : BoaPass<"boa-build-step"> {
  let summary = "the step as a loop nest in horizontal order";
  let description = [{
    Declares the storages and builds the entry points @step and @evaluate in the
    plain order: micro-batches outside, layers inside, the optimizer at the end.

    Results of one type, one of which goes on from another, share a storage of
    checkpoints. Where types differ there are several: `@checkpoints.embed`, `@checkpoints.embed.1`
    for a second result. If a layer's argument is stored elsewhere, the first layer has a loop by
    itself. Gradients of shared results are accumulated in `@boundary_gradients.NAME.sum`. The first
    contribution in program order sets the entry. What layers save is in `@saved.NAME`, values with a
    place of their own in `@saved.NAME.VALUE`. A frozen group has a storage of weights alone, and no
    update. Backward functions lose the activations that they do not use, so nothing reads these.

    With `predict` it builds @predict instead: one forward pass that leaves the
    logits in a storage.

    Before:
    ```mlir before Inputs/tiny.mlir --boa-differentiate
    boa.stage @block_forward(@embed_forward) repeat 3
    ...
    func.func @block_backward(%x: tensor<2x16x512xf32>, %w: tensor<512x512xf32> {boa.param = @block::@w}, ...
    ```
    After:
    ```mlir after
    boa.storage @checkpoints[4, 4] : tensor<2x16x512xf32> on device role checkpoints
    ...
    boa.storage @weights.block[3] : tensor<276480xbf16> on device role weights chunks 15 persistent
    ...
    boa.step @step(%step, %pending) {
      boa.loop micro_batch %m = 0 to 4 forward {
    ...
        boa.loop layer %l = 0 to 3 forward {
          %x = boa.read @checkpoints[%l, %m] : tensor<2x16x512xf32>
          %w = boa.read @weights.block[%l] : tensor<276480xbf16>
          %y = boa.call @block_forward(%x, %w) : ...
          %next = boa.shift %l, 1
          boa.write %y, @checkpoints[%next, %m] : tensor<2x16x512xf32>
        }
    ...
      boa.loop layer %l = 0 to 3 forward {
        boa.optimizer_update @block[%l] chunks 0 to 15 step %step
    ```
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
    tokens and positions that the caller brings, and adds their keys and values to the caches.

    Before:
    ```mlir before build-generation.mlir --boa-cache-attention=prefill=2
    func.func @b_generate(%x: tensor<1x1x8xf32>, %keys: tensor<1x4x8xf32> {boa.cache}, %values: tensor<1x4x8xf32> {boa.cache}, %positions: tensor<1x1xi32>) -> ...
    ```
    After:
    ```mlir after
    boa.storage @cache.b[3] : tensor<64xf32> on device role cache
    ...
    boa.step @generate(%step, %pending) {
    ...
      boa.loop layer %l = 0 to 3 forward {
        %x = boa.read @checkpoints.generate[%l] : tensor<1x1x8xf32>
    ...
        %positions = boa.read @input.positions.generate[%c0] : tensor<1x1xi32>
    ...
        %y, %cache = boa.call @b_generate(%x, %positions) : ...
    ...
        boa.write %y, @checkpoints.generate[%next] : tensor<1x1x8xf32>
    ...
        boa.accumulate %cache, @cache.b[%l] initial %false : tensor<64xf32>
    ```
  }];
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

    Before:
    ```mlir before
    func.func private @f(tensor<8xf32>) -> tensor<8xf32>
    boa.storage @x[4, 4] : tensor<8xf32> on ssd role checkpoints persistent
    boa.step @evaluate(%step, %pending) {
      boa.loop micro_batch %m = 0 to 4 forward {
        boa.loop layer %l = 0 to 3 forward {
          %x = boa.read @x[%l, %m] : tensor<8xf32>
          %y = boa.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
          %next = boa.shift %l, 1
          boa.write %y, @x[%next, %m] : tensor<8xf32>
        }
      }
    }
    ```
    After:
    ```mlir after
      boa.loop layer %l = 0 to 3 forward {
        boa.loop micro_batch %m = 0 to 4 snake(%l) {
          %x = boa.read @x[%l, %m] : tensor<8xf32>
    ```
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

    Before:
    ```mlir before Inputs/tiny.mlir --boa-differentiate --boa-build-step --boa-vertical-schedule
    boa.step @step(%step, %pending) {
    ...
      boa.loop layer %l = 0 to 3 reverse {
    ...
          boa.accumulate %g, @gradients.block[%l] initial %first : ...
        }
      }
    ...
      boa.loop layer %l = 0 to 3 forward {
        boa.optimizer_update @block[%l] chunks 0 to 15 step %step
    ```
    After:
    ```mlir after
    boa.step @step(%step, %pending) {
    ...
      boa.loop layer %l = 0 to 3 forward {
        boa.optimizer_update @block[%l] chunks 11 to 15 step %pending
    ...
          boa.accumulate %g, @gradients.block[%l] initial %first : ...
        }
        boa.optimizer_update @block[%l] chunks 0 to 11 step %step
    ...
    boa.step @drain(%step, %pending) {
    ...
      boa.loop layer %l = 0 to 3 forward {
        boa.optimizer_update @block[%l] chunks 11 to 15 step %pending
    ```
  }];
  let options = [Option<"delay", "delay", "double", "",
                        "share in [0, 1]; absent: as the plan says">];
}

def ContractStorage : BoaPass<"boa-contract-storage"> {
  let summary = "one entry for all micro-batches, if they need it one after another";
  let description = [{
    Classic array contraction. Each micro-batch has its own entry of activations and their
    gradients, so that the order of loops is free. Once the order is fixed, an entry may
    be needed by one micro-batch at a time, as in the horizontal order. Then all share it.

    Legal if each read sees the write of its own micro-batch, and no other micro-batch
    writes the entry in between, in every entry point. The pass enumerates them, and
    compares what the program computes before and after. Storages that the trainer fills
    or reads keep their entries.

    Before:
    ```mlir before
    func.func private @f(tensor<8xf32>) -> tensor<8xf32>
    boa.storage @input.tokens[4] : tensor<8xf32> on device role input
    boa.storage @x[4] : tensor<8xf32> on device role checkpoints
    boa.storage @loss[4] : tensor<8xf32> on device role loss
    boa.step @evaluate(%step, %pending) {
      boa.loop micro_batch %m = 0 to 4 forward {
        %tokens = boa.read @input.tokens[%m] : tensor<8xf32>
        %x = boa.call @f(%tokens) : (tensor<8xf32>) -> tensor<8xf32>
        boa.write %x, @x[%m] : tensor<8xf32>
        %again = boa.read @x[%m] : tensor<8xf32>
        %loss = boa.call @f(%again) : (tensor<8xf32>) -> tensor<8xf32>
        boa.write %loss, @loss[%m] : tensor<8xf32>
      }
    }
    ```
    After:
    ```mlir after
    boa.storage @input.tokens[4] : ...
    boa.storage @x[1] : tensor<8xf32> on device role checkpoints
    boa.storage @loss[4] : ...
    ...
        %c0 = arith.constant 0 : index
        boa.write %x, @x[%c0] : tensor<8xf32>
    ```
  }];
}

def VerifyStep : BoaPass<"boa-verify-step"> {
  let summary = "closes the step phase";
  let description = [{
    Enumerates the runs of a trainer and checks that indices are within the bounds of their
    storages, and that every read comes after its write, in this run or one before it.

    Before:
    ```mlir before
    func.func private @f(tensor<8xf32>) -> tensor<8xf32>
    boa.storage @x[4] : tensor<8xf32> on ssd role boundary_gradients
    boa.step @step(%step, %pending) {
      boa.loop layer %l = 0 to 3 reverse {
        %next = boa.shift %l, 1
        %x = boa.read @x[%next] : tensor<8xf32>
        %y = boa.call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>
        boa.write %y, @x[%l] : tensor<8xf32>
      }
    }
    ```
    Refused:
    ```text after
    ...error: 'boa.read' op reads entry 3 of @x before it is written
    ```
  }];
}
