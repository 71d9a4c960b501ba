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

/// An op on the value of an entry. `kind` is that of its access (StorageAccess). If `fresh` holds,
/// nothing is read.
class Boa_EntryOp<string mnemonic, string kind, list<Trait> traits, string fresh = "Value()">
    : Boa_Op<mnemonic, !listconcat([
          DeclareOpInterfaceMethods<SymbolUserOpInterface>,
          DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>], traits)> {
  let extraClassDefinition = [{
    SmallVector<StorageAccess> $cppClass::getAccesses() {
      return {{StorageAccess::Kind::}] # kind # [{, getStorageAttr(), getIndices(), Value(), 0, 0,
               }] # fresh # [{}};
    }
    LogicalResult $cppClass::verifySymbolUses(SymbolTableCollection &tables) {
      return verifyAccess(*this, getStorageAttr(), getIndices(), getValue().getType(), tables);
    }
  }];
}

def Boa_ReadOp : Boa_EntryOp<"read", "read", [MemoryEffects<[MemRead]>, Boa_NamesResults]> {
  let summary = "the value of a storage's entry: `boa.read @checkpoints[%l, %m] : tensor<...>`";
  let arguments = (ins FlatSymbolRefAttr:$storage, Variadic<Index>:$indices);
  let results = (outs AnyStaticShapeTensor:$value);
  let assemblyFormat = "$storage `[` $indices `]` attr-dict `:` type($value)";
}
def Boa_WriteOp : Boa_EntryOp<"write", "write", [MemoryEffects<[MemWrite]>]> {
  let summary = "sets a storage's entry";
  let arguments = (ins AnyStaticShapeTensor:$value, FlatSymbolRefAttr:$storage,
                       Variadic<Index>:$indices);
  let assemblyFormat = "$value `,` $storage `[` $indices `]` attr-dict `:` type($value)";
}
def Boa_AccumulateOp : Boa_EntryOp<"accumulate", "accumulate",
                                   [MemoryEffects<[MemRead, MemWrite]>], "getInitial()"> {
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
