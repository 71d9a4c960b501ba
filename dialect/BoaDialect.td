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
include "mlir/IR/OpBase.td"

def Boa_Dialect : Dialect {
  let name = "boa";
  let cppNamespace = "::boa";
  let summary = "A transformer, its training step, and where each byte of it lives";
  let description = [{
    One dialect in three phases. Each phase is closed by a verifier pass, so that
    a program can be read, written by hand and tested at any point.

    ```
      model    boa.model, boa.group, boa.stage       what is computed: one function
                 + functions of tensor ops           per stage, pure tensor code
        |   --boa-differentiate, --boa-build-step
        v
      step     boa.step, boa.loop, boa.storage       in what order: loops over layer
                 boa.read / write / accumulate         and micro_batch around calls
                 boa.optimizer_update
        |   --boa-vertical-schedule, --boa-split-optimizer, --boa-insert-offload
        v
      storage  boa.prefetch / await / create         where each byte is, and when it
                 boa.launch / update                   moves: buffers and tokens
                 boa.offload / release
    ```

    Attributes that later phases read off functions:

    - `boa.param = @params.group::@name` on an argument of a stage function: the
      parameter that it takes; on a result of a backward function: the gradient
      of that parameter.
    The configuration stands on the module, as two dictionaries:

    - `boa.train = {model = "gpt", data = "data/kjv.txt", objective =
      "next_token" | "masked", mask_probability = 0.15 (of the positions of each
      sequence, rounded, at least one), mask_token = 256 : i64,
      vocab, context, batch, micro_batch, steps, seed (all i64), clip = 1.0 (0:
      none), weights = "f32" | "bf16", optimizer = {kind = "adamw" | "sgd",
      beta1, beta2, eps, weight_decay, momentum, rate = "constant" | "linear" |
      "cosine", peak, floor (f64), warmup : i64}, evaluate_every,
      evaluate_batches, commit_every : i64 (0: none), commit_seconds = 300.0 (0:
      not by time), commit_keep = 1 : i64, nonfinite = "stop" | "skip",
      schedule = "vertical" | "horizontal", delay = 0.25, prefetch = 1 : i64,
      recompute = true, place = {weights, gradients, optimizer, checkpoints,
      boundary_gradients, saved = "device" | "host" | "ssd"}}`
    - `boa.machine = {name, device_memory, host_memory, threads : i64 (0: not
      said, all), ssd = [...]}`, the last a list of dictionaries {path, read, write}; bytes and
      bytes/s.
  }];
  let useDefaultTypePrinterParser = 1;
}

class Boa_Type<string name, string typeMnemonic> : TypeDef<Boa_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Boa_TokenType : Boa_Type<"Token", "token"> {
  let summary = "an asynchronous transfer that has been started";
  let description = [{
    What `boa.prefetch` and `boa.offload` return. Only `boa.await` makes a buffer
    of a prefetch's token, so no op can use data that has not been waited for.
  }];
}

def Boa_BufferType : Boa_Type<"Buffer", "buffer"> {
  let summary = "a slot of the arena that holds (some chunks of) a storage's entry";
  let parameters = (ins "::mlir::Type":$contents);
  let assemblyFormat = "`<` $contents `>`";
}

def Boa_LoopOrder : I32EnumAttr<"LoopOrder", "the order in which a loop runs", [
  I32EnumAttrCase<"forward", 0>,
  I32EnumAttrCase<"reverse", 1>,
  I32EnumAttrCase<"snake", 2>
]> {
  let cppNamespace = "::boa";
}

def Boa_Tier : I32EnumAttr<"Tier", "where a storage lives", [
  I32EnumAttrCase<"device", 0>,
  I32EnumAttrCase<"host", 1>,
  I32EnumAttrCase<"ssd", 2>
]> {
  let cppNamespace = "::boa";
}

class Boa_Op<string mnemonic, list<Trait> traits = []>
    : Op<Boa_Dialect, mnemonic, traits>;

#endif // BOA_DIALECT_TD
