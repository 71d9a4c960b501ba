//===- StoragePasses.td - The passes of the storage phase --*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes.td includes this file. The passes are in the order in which Pipeline.cpp runs them.
//
//===----------------------------------------------------------------------===//

class BoaStreamingPass<string flag> : BoaPass<flag> {
  let options = [ListOption<"stream", "stream", "std::string",
                            "storages whose buffers are not held while others compute">];
}

def InsertOffload : BoaPass<"boa-insert-offload"> {
  let summary = "naive, correct prefetch, offload and release at each use";
  let description = [{
    A read becomes a prefetch, a result a buffer that is offloaded, a call a launch. Each buffer is
    released after its use.

    An optimizer update becomes a loop over chunks. Kernels take buffers on the device.
    Updates and norms run where `update` in `boa.config @plan` says, and take buffers
    there. Homes come from `place` in `boa.config @plan`: numbers of layers, then shares
    of the layers behind them, rounded to whole chunks. Where an entry is one chunk, a
    share is of the entries of each layer. A storage with `boa.place` has that place
    instead of its role's.

    Before:
    ```mlir before
    boa.config @plan {place = {weights = "ssd"}}
    func.func private @f(tensor<4xf32>, tensor<4096xf32>) -> tensor<4xf32>
    boa.storage @checkpoints[3] : tensor<4xf32> on device role checkpoints
    boa.storage @weights.block[2] : tensor<4096xf32> on device role weights persistent
    boa.step @step(%step, %pending) {
      boa.loop layer %l = 0 to 2 forward {
        %x = boa.read @checkpoints[%l] : tensor<4xf32>
        %w = boa.read @weights.block[%l] : tensor<4096xf32>
        %y = boa.call @f(%x, %w) : (tensor<4xf32>, tensor<4096xf32>) -> tensor<4xf32>
        %next = boa.shift %l, 1
        boa.write %y, @checkpoints[%next] : tensor<4xf32>
      }
    }
    ```
    After:
    ```mlir after
    boa.storage @weights.block[2] : tensor<4096xf32> on ssd role weights persistent
    boa.step @step(%step, %pending) {
      boa.loop layer %l = 0 to 2 forward {
        %next = boa.shift %l, 1
        %x = boa.prefetch @checkpoints[%l] : <tensor<4xf32>, device>
        %w = boa.prefetch @weights.block[%l] : <tensor<4096xf32>, device>
        %y = boa.create @checkpoints[%next] : <tensor<4xf32>, device>
        boa.launch @f reads(%x, %w : ...) writes(%y : ...)
        boa.offload %y, @checkpoints[%next] : ...
        boa.release %x : ...
        boa.release %w : ...
        boa.release %y : ...
    ```
  }];
}

def HoistPrefetch : BoaStreamingPass<"boa-hoist-prefetch"> {
  let summary = "transfers that do not depend on a loop leave it; prefetches move up";
  let description = [{
    A prefetch whose entry is the same in every iteration moves before the loop, and
    its offload and release move behind it. In the vertical order the weights of a
    layer then move once for all micro-batches. Next, each prefetch moves up in its
    block, until it meets an offload of the same storage.

    A move that would change the result of the program is not made. A remark reports it.

    A buffer of a storage in `stream` does not leave a loop in which kernels, updates or norms of
    others run. Its prefetches do not move up.

    Before:
    ```mlir before
    boa.storage @w[3] : tensor<8xf32> on ssd role weights persistent
    boa.step @evaluate(%step, %pending) {
      boa.loop layer %l = 0 to 3 forward {
        boa.loop micro_batch %m = 0 to 4 forward {
          %w = boa.prefetch @w[%l] : <tensor<8xf32>, device>
          boa.launch @f reads(%w : <tensor<8xf32>, device>)
          boa.release %w : <tensor<8xf32>, device>
        }
      }
    }
    ```
    After:
    ```mlir after
      boa.loop layer %l = 0 to 3 forward {
        %w = boa.prefetch @w[%l] : <tensor<8xf32>, device>
        boa.loop micro_batch %m = 0 to 4 forward {
          boa.launch @f reads(%w : <tensor<8xf32>, device>)
        }
        boa.release %w : <tensor<8xf32>, device>
      }
    ```
  }];
}

def ElideTransfers : BoaStreamingPass<"boa-elide-transfers"> {
  let summary = "drops transfers of data that is already in memory";
  let description = [{
    If a buffer of an entry is live anyway, other accesses to the entry in the same
    block use that buffer. So the optimizer takes the gradients and weights of the
    backward pass that has just ended. If the buffer is in the other memory, an access
    that only reads copies from it.

    Sharing that would change the result of the program is not done. A remark reports it.

    Of a storage in `stream`, accesses do not share a buffer if others compute between them.

    Before:
    ```mlir before
    boa.storage @x[1] : tensor<8xf32> on ssd role checkpoints persistent
    boa.step @evaluate(%step, %pending) {
      %c0 = arith.constant 0 : index
      %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
      boa.launch @f updates(%x : <tensor<8xf32>, device>)
      boa.offload %x, @x[%c0] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
      %y = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
      boa.launch @g reads(%y : <tensor<8xf32>, device>)
      boa.release %y : <tensor<8xf32>, device>
    }
    ```
    After:
    ```mlir after
      boa.launch @f updates(%x : <tensor<8xf32>, device>)
      boa.offload %x, @x[%c0] : <tensor<8xf32>, device>
      boa.launch @g reads(%x : <tensor<8xf32>, device>)
      boa.release %x : <tensor<8xf32>, device>
    ```
  }];
}

def RetainBuffers : BoaStreamingPass<"boa-retain-buffers"> {
  let summary = "keeps a buffer that is used again at once";
  let description = [{
    If the next use of an entry follows at once, its buffer is retained instead of
    released. This holds for the boundary activation at a turn of the snake, for the last
    layer's weights between forward and backward, and for the first layer's between two
    steps. A buffer is not retained if a chunk of its entry is written in between, or if
    it holds data that was never offloaded.

    The storages in `stream` count as one with others of their role, as the entries of layers do.

    Before:
    ```mlir before
    boa.storage @x[1] : tensor<8xf32> on ssd role checkpoints persistent
    boa.step @evaluate(%step, %pending) {
      %c0 = arith.constant 0 : index
      %x = boa.create @x[%c0] : <tensor<8xf32>, device>
      boa.launch @f writes(%x : <tensor<8xf32>, device>)
      boa.offload %x, @x[%c0] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
      %y = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
      boa.launch @g reads(%y : <tensor<8xf32>, device>)
      boa.release %y : <tensor<8xf32>, device>
    }
    ```
    After:
    ```mlir after
      %true = arith.constant true
      boa.release %x retain %true : <tensor<8xf32>, device>
      %y = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
    ```
  }];
}

def ElideOffloads : BoaPass<"boa-elide-offloads"> {
  let summary = "drops offloads that nothing reads";
  let description = [{
    Drops an offload if its data is overwritten before it is read, or narrows it to the
    chunks that are read. Trained state outlives the program: its offloads stay.

    Before:
    ```mlir before
    boa.storage @x[1] : tensor<8xf32> on ssd role checkpoints
    boa.step @step(%step, %pending) {
      %c0 = arith.constant 0 : index
      %x = boa.create @x[%c0] : <tensor<8xf32>, device>
      boa.launch @f writes(%x : <tensor<8xf32>, device>)
      boa.offload %x, @x[%c0] : <tensor<8xf32>, device>
      boa.release %x : <tensor<8xf32>, device>
    }
    ```
    After:
    ```mlir after
      boa.launch @f writes(%x : <tensor<8xf32>, device>)
      boa.release %x : <tensor<8xf32>, device>
    ```
  }];
}

def PlaceWeights : BoaPass<"boa-place-weights"> {
  let summary = "keeps the weights in memory that fit, to continue a text";
  let description = [{
    Each token takes all weights once. So any byte of weights that stays in memory saves one
    byte of reading for each token. First come weights that are there once, then as many layers
    as fit beside one entry that is read ahead. They lie evenly among those on SSD.

    Without a limit on memory, it does nothing.

    Before:
    ```mlir before
    boa.config @machine {host_memory = 5308416 : i64}
    boa.storage @weights.head[1] : tensor<262144xf32> on device role weights persistent
    boa.storage @weights.block[4] : tensor<262144xf32> on device role weights persistent
    boa.step @generate(%step, %pending) {
      %c0 = arith.constant 0 : index
      boa.loop layer %l = 0 to 4 forward {
        %w = boa.prefetch @weights.block[%l] : <tensor<262144xf32>, device>
        boa.release %w : <tensor<262144xf32>, device>
      }
      %w = boa.prefetch @weights.head[%c0] : <tensor<262144xf32>, device>
      boa.release %w : <tensor<262144xf32>, device>
    }
    ```
    After:
    ```mlir after
    boa.storage @weights.head[1] : tensor<262144xf32> on device role weights persistent
    boa.storage @weights.block[4] : tensor<262144xf32> on [0 to 1: ssd, 1 to 2: device, 2 to 3: ssd, 3 to 4: device] role weights persistent
    ```
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

    Before:
    ```mlir before
    boa.config @machine {host_memory = 9437184 : i64}
    boa.config @plan {prefetch = 1 : i64}
    boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent
    boa.step @step(%step, %pending) {
      boa.loop layer %l = 0 to 3 forward {
        %w = boa.prefetch @w[%l] : <tensor<1048576xf32>, device>
        boa.release %w : <tensor<1048576xf32>, device>
      }
    }
    ```
    After:
    ```mlir after
    module attributes {boa.arena = 8400896 : i64, ...
    ...
      boa.storage @w[3] : tensor<1048576xf32> on ssd role weights persistent slots device 2 x 1
    ```
  }];
}

def PrepareOperands : BoaPass<"boa-prepare-operands"> {
  let summary = "makes the form of weights that kernels ask for, once a visit";
  let description = [{
    A kernel may ask for a prepared form of buffers that it reads. If a loop launches it more than
    once and leaves these buffers alone, the form is made before the loop, given to all launches,
    and released behind it. Its storage has one entry in the device's memory.

    A form is made only if it fits into the memory that --boa-assign-buffers left, which counts it
    then (`boa.arena`). A remark says what was made, and what was not for lack of memory: those
    launches go without.

    Before:
    ```mlir before
    boa.storage @w[3] : tensor<8xf32> on ssd role weights persistent
    boa.kernel @pack(%x: !llvm.ptr) reads [tensor<8xf32>] writes [tensor<16xf32>] {
      boa.return
    }
    boa.kernel @f(%x: !llvm.ptr) reads [tensor<8xf32>] prepared #boa.prepared<tensor<16xf32> by @pack of [0]> {
      boa.return
    }
    boa.step @evaluate(%step, %pending) {
      boa.loop layer %l = 0 to 3 forward {
        %w = boa.prefetch @w[%l] : <tensor<8xf32>, device>
        boa.loop micro_batch %m = 0 to 4 forward {
          boa.launch @f reads(%w : <tensor<8xf32>, device>)
        }
        boa.release %w : <tensor<8xf32>, device>
      }
    }
    ```
    After:
    ```mlir after
    boa.storage @prepared.f[1] : tensor<16xf32> on device role prepared
    ...
      boa.loop layer %l = 0 to 3 forward {
        %w = boa.prefetch @w[%l] : <tensor<8xf32>, device>
        %c0 = arith.constant 0 : index
        %prepared.f = boa.create @prepared.f[%c0] : <tensor<16xf32>, device>
        boa.launch @pack reads(%w : <tensor<8xf32>, device>) writes(%prepared.f : <tensor<16xf32>, device>)
        boa.loop micro_batch %m = 0 to 4 forward {
          boa.launch @f reads(%w : <tensor<8xf32>, device>) prepared(%prepared.f : <tensor<16xf32>, device>)
        }
        boa.release %prepared.f : <tensor<16xf32>, device>
        boa.release %w : <tensor<8xf32>, device>
      }
    ```
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

    Before:
    ```mlir before
    boa.storage @x[2] : tensor<8xf32> on ssd role checkpoints persistent
    boa.step @step(%step, %pending) {
      %c0 = arith.constant 0 : index
      %x = boa.prefetch @x[%c0] : <tensor<8xf32>, device>
      boa.launch @f reads(%x : <tensor<8xf32>, device>)
    }
    ```
    Refused:
    ```text after
    ...error: 'boa.prefetch' op takes a slot that is not released
    ```
  }];
}
