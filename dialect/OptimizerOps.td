//===- OptimizerOps.td - The optimizer of one element ------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_OPTIMIZER_OPS_TD
#define BOA_OPTIMIZER_OPS_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

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
    The regions are arithmetic of scalars: f32, f64 and integers of 1, 8, 16, 32 or 64 bits, with the
    functions of `math` that every host has. A GPU has fewer: `plan.update = "device"` refuses the
    others. No op may end the program, so an integer is divided by a constant alone.

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

#endif // BOA_OPTIMIZER_OPS_TD
