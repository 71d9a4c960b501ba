//===- EntryOps.td - Whole entries, as values --------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_ENTRY_OPS_TD
#define BOA_ENTRY_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Boa_ReadOp : Boa_Op<"read", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>,
    MemoryEffects<[MemRead]>, Boa_NamesResults]> {
  let summary = "the value of a storage's entry: `boa.read @checkpoints[%l, %m] : tensor<...>`";
  let arguments = (ins FlatSymbolRefAttr:$storage, Variadic<Index>:$indices);
  let results = (outs AnyStaticShapeTensor:$value);
  let assemblyFormat = "$storage `[` $indices `]` attr-dict `:` type($value)";
}
def Boa_WriteOp : Boa_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>,
    MemoryEffects<[MemWrite]>]> {
  let summary = "sets a storage's entry";
  let arguments = (ins AnyStaticShapeTensor:$value, FlatSymbolRefAttr:$storage,
                       Variadic<Index>:$indices);
  let assemblyFormat = "$value `,` $storage `[` $indices `]` attr-dict `:` type($value)";
}
def Boa_AccumulateOp : Boa_Op<"accumulate", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds to a storage's entry: a reduction, free to be reordered";
  let description = [{
    If `initial` holds, the op sets the entry: it is the first contribution of a step.
    (Reordering changes rounding only.)
  }];
  let arguments = (ins AnyStaticShapeTensor:$value, FlatSymbolRefAttr:$storage,
                       Variadic<Index>:$indices, I1:$initial);
  let assemblyFormat = [{
    $value `,` $storage `[` $indices `]` `initial` $initial attr-dict `:` type($value)
  }];
}

#endif // BOA_ENTRY_OPS_TD
