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
    Checks that the stages form a chain (each takes what the one before returns,
    the first takes tokens, the last returns a scalar loss), that at most one
    repeats, and that bodies hold compute ops only. Embeddings look up the tokens that the
    first stage takes. Where there is a `boa.config @train`, micro-batch, context and
    vocabulary must be those of the functions, and attention is causal where the objective
    is next_token. Storages and entry points are refused: those of the next phase have the
    size that is checked here.
  }];
}

def Differentiate : BoaPass<"boa-differentiate"> {
  let summary = "a backward function beside each forward one";
  let description = [{
    Reverse-mode differentiation of each stage's function through
    DifferentiableOpInterface. `@block_forward(x, params) -> y` gains
    `@block_backward(x, params, dy) -> (dx, dparams)`, which computes the forward
    values it needs again from the boundary activation `x`. With
    `recompute=false` there is also `@block_forward_saving(x, params) -> (y,
    saved)`, and the backward function takes `saved`, of as many element types as
    there are; a value that costs nothing (a split, a cast that widens, a parameter
    that is rounded) is computed again rather than saved. The last stage's backward is
    fused with its forward and returns the loss too; its seed is 1/M, so that the
    gradients add up to those of the mean over the M micro-batches. A gradient that was
    summed over rows is f32 up to its parameter, also where activations are bf16.
  }];
  let options = [Option<"recompute", "recompute", "bool", "true",
                        "compute a layer's inner activations again in backward">];
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
    With `predict` it builds @predict instead: one forward pass that leaves the
    logits in a storage, with everything in memory.
  }];
  let options = [Option<"predict", "predict", "bool", "false",
                        "build the entry point that leaves logits, and no other">];
}

def VerticalSchedule : BoaPass<"boa-vertical-schedule"> {
  let summary = "all micro-batches of a layer before the next layer";
  let description = [{
    Distributes the micro_batch loop over the statements of its body and
    interchanges it with the layer loops; then lets every other nest run its
    micro-batches in reverse (the snake), so that the last micro-batch of one
    layer is the first of the next.

    Legality is decided exactly: control is static, so the program is enumerated
    before and after; every read must see the same write, and every entry end with
    the same one, since somebody may read it after the step. Otherwise the pass
    refuses and names the dependence. Accumulations may be reordered: that
    changes rounding, not the sum.
  }];
  let options = [Option<"snake", "snake", "bool", "true", "alternate the direction">];
}

def SplitOptimizer : BoaPass<"boa-split-optimizer"> {
  let summary = "fuses the optimizer with backward and splits it across the step boundary";
  let description = [{
    The update of a group's entry moves to where its gradient is complete. A share
    `delay` of its chunks moves on, across the back edge of the step loop, to
    before the first use of the weights in the next step, where it applies with
    the step count and learning rate of the step that made the gradient
    (`%pending`). The entry point @drain is the epilogue.

    Refused with 0 < delay < 1 under global-norm clipping and under nonfinite =
    skip, since the head of the update would come before all gradients are in.
  }];
  let options = [Option<"delay", "delay", "double", "0.0", "share in [0, 1]">];
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
    An optimizer update becomes a loop over chunks. Kernels take buffers on the device,
    updates and norms where `update` in `boa.config @train` has them run. Homes come from `place` in `boa.config @train`, shares of chunks rounded to
    whole ones.
  }];
}

def HoistPrefetch : BoaPass<"boa-hoist-prefetch"> {
  let summary = "transfers that do not depend on a loop leave it; prefetches move up";
  let description = [{
    A prefetch whose entry is the same in every iteration moves before the loop,
    with its offload and release after it: in the vertical order the weights of a
    layer move once for all micro-batches. Then each prefetch moves to the top of
    its block, as far as no offload of the same storage is in the way.

    A move after which the program would compute something else is not made, and told
    in a remark.
  }];
}

def ElideTransfers : BoaPass<"boa-elide-transfers"> {
  let summary = "drops transfers of what is already in memory";
  let description = [{
    Within a block, an access to an entry whose buffer is still live, or will be live,
    uses that buffer (the optimizer takes the gradients and weights of the backward pass
    that has just ended). Where that buffer is in another memory, what is only read is
    copied from there.

    What would then make the program compute something else is not shared, and told
    in a remark.
  }];
}

def RetainBuffers : BoaPass<"boa-retain-buffers"> {
  let summary = "keeps in memory what is used again at once";
  let description = [{
    Where the next use of an entry follows at once, its buffer is retained instead of
    given back: the snake's boundary activation, the last layer's weights between
    forward and backward, the first layer's between a step and the next. Not where a
    chunk of the entry is written in between, or the buffer holds what never went home.
  }];
}

def ElideOffloads : BoaPass<"boa-elide-offloads"> {
  let summary = "drops what is written home and never read there";
  let description = [{
    An offload that nothing reads before it is overwritten is dropped, or narrowed to
    the chunks that are read; not of trained state, which outlives the program.
  }];
}

def AssignBuffers : BoaPass<"boa-assign-buffers"> {
  let summary = "static slots: how many of each storage the arena holds";
  let description = [{
    Enumerates the program, counts the most slots that are live at once, of each size in
    each space, adds `prefetch` to look ahead where the memory limits allow it, and
    refuses, with the arithmetic, a program that cannot fit.

    Where device and host are one memory, limits that are given add up, and a limit given
    for one of them alone is the limit of all. Where they are two, each has its own, and
    what passes between SSD and device has a slot in the host's. The workspace of kernels
    and their tables (`boa.constants`) are the device's.
  }];
}

def VerifyStorage : BoaPass<"boa-verify-storage"> {
  let summary = "closes the storage phase";
  let description = [{
    Enumerates what a trainer runs, @step until it is steady: every buffer is
    released exactly once and not used after; every retained copy is taken up; no
    more slots are live than were assigned; every chunk read was written before,
    or existed before the step; buffers go home to their own storage; no kernel
    writes memory that another of its operands reads; updates take weights, gradient and
    moments of one layer, and all moments of the optimizer; where the memories are two,
    kernels take buffers on the device and updates on the host.
  }];
}

//===----------------------------------------------------------------------===//
// To code
//===----------------------------------------------------------------------===//

def OutlineKernels : BoaPass<"boa-outline-kernels"> {
  let summary = "stage functions as kernels on packed buffers";
  let description = [{
    Gives each argument and result of a launched function its place,
    `boa.buffer` and `boa.offset`; makes gradients accumulators (arguments tied to
    results); widens weights stored as bf16. All layers share one kernel.
  }];
}

def ConvertBoaToRuntime : BoaPass<"convert-boa-to-runtime"> {
  let summary = "entry points to functions that call the runtime's C ABI";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}
