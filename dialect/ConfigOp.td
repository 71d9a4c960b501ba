//===- ConfigOp.td - boa.config ----------------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_CONFIG_OP_TD
#define BOA_CONFIG_OP_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"

def Boa_ConfigOp : Boa_Op<"config", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "settings of the model, its training, the plan or the machine, one a line";
  let description = [{
    ```mlir
    boa.config @machine {
      device = "cpu",
      device_memory = 268435456 : i64
    }
    ```
    The name is @model, @train, @plan or @machine. `runtime/abi/settings.def` is the
    table of settings, with ranges and defaults. The verifier refuses any other key.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DictionaryAttr:$settings);
  let assemblyFormat = "$sym_name custom<Settings>($settings) attr-dict";
  let hasVerifier = 1;
}

#endif // BOA_CONFIG_OP_TD
