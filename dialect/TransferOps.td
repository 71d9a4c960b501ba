//===- TransferOps.td - Buffers for chunks of entries ------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TRANSFER_OPS_TD
#define BOA_TRANSFER_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// An op between a buffer and the chunks of an entry. `kind` and `fresh` are as in Boa_EntryOp.
class Boa_StorageAccessOp<string mnemonic, string kind, list<Trait> traits = [],
                          string fresh = "Value()">
    : Boa_QueueOp<mnemonic, "transfer", !listconcat([
          AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
          DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getAccesses"]>], traits), [{
    /// The chunks touched: [first, first + count); count 0: the whole entry.
    bool isWholeEntry() { return getCount() == 0; }
  }]> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    SmallVector<StorageAccess> $cppClass::getAccesses() {
      return {{StorageAccess::Kind::}] # kind # [{, getStorageAttr(), getIndices(), getFirst(), 0,
               int64_t(getCount()), }] # fresh # [{}};
    }
    LogicalResult $cppClass::verify() { return verifyChunks(*this); }
    LogicalResult $cppClass::verifySymbolUses(SymbolTableCollection &tables) {
      return verifyAccess(*this, getStorageAttr(), getIndices(),
                          getBuffer().getType().getContents(), tables);
    }
  }];
}

def Boa_PrefetchOp : Boa_StorageAccessOp<"prefetch", "read", [Boa_NamesResults], "getZero()"> {
  let summary = "chunks of an entry, brought into a space";
  let description = [{
    If all of them live in memory of that space, the buffer is their home. Otherwise it is
    a slot, and the chunks are read from their homes. On a machine with separate memories
    they go from SSD to the device through slots of host memory. If `zero` holds, the
    buffer is filled with zeros and nothing is read.
    ```mlir
    %w = boa.prefetch @weights.block[%l] : <tensor<4096xf32>, device>
    %momentum.c = boa.prefetch @momentum.block[%l] chunk %c count 1 : <tensor<4096xf32>, host>
    %g = boa.prefetch @gradients.block[%l] zero %first : <tensor<4096xf32>, device>
    ```
    The type is that of the whole entry, even if the buffer holds only some chunks.
  }];
  let arguments = (ins Arg<FlatSymbolRefAttr, "", [MemRead, MemWrite]>:$storage,
                       Variadic<Index>:$indices, Optional<Index>:$first,
                       DefaultValuedAttr<I64Attr, "0">:$count, Optional<I1>:$zero);
  let results = (outs Res<Boa_BufferType, "", [MemAlloc, MemWrite]>:$buffer);
  let assemblyFormat = [{
    $storage `[` $indices `]` (`chunk` $first^ `count` $count)? (`zero` $zero^)? attr-dict
    `:` type($buffer)
  }];
}
def Boa_CreateOp : Boa_StorageAccessOp<"create", "write", [Boa_NamesResults]> {
  let summary = "a buffer for chunks of an entry, contents undefined: for a kernel's result";
  let arguments = (ins Arg<FlatSymbolRefAttr, "", [MemWrite]>:$storage,
                       Variadic<Index>:$indices, Optional<Index>:$first,
                       DefaultValuedAttr<I64Attr, "0">:$count);
  let results = (outs Res<Boa_BufferType, "", [MemAlloc]>:$buffer);
  let assemblyFormat = [{
    $storage `[` $indices `]` (`chunk` $first^ `count` $count)? attr-dict `:` type($buffer)
  }];
}
def Boa_CopyOp : Boa_QueueOp<"copy", "transfer", [Boa_AccessOpInterface]> {
  let summary = "copies chunks of an entry from one buffer to another";
  let description = [{
    For an entry that is live in two spaces at once: a kernel made the gradient on the
    device, and the optimizer runs on the host. Copies all chunks of `to`; `from` holds
    these, too.
    ```mlir
    boa.copy %g to %g.c : <tensor<4096xf32>, device>, <tensor<4096xf32>, host>
    ```
  }];
  let arguments = (ins Arg<Boa_BufferType, "", [MemRead]>:$from,
                       Arg<Boa_BufferType, "", [MemWrite]>:$to);
  let assemblyFormat = "$from `to` $to attr-dict `:` type($from) `,` type($to)";
  let hasVerifier = 1;
}
def Boa_OffloadOp : Boa_StorageAccessOp<"offload", "write"> {
  let summary = "takes chunks of an entry home";
  let description = [{
    Writes each chunk to its home. Nothing moves for a chunk whose home is the buffer.
  }];
  let arguments = (ins Arg<Boa_BufferType, "", [MemRead]>:$buffer,
                       Arg<FlatSymbolRefAttr, "", [MemWrite]>:$storage,
                       Variadic<Index>:$indices, Optional<Index>:$first,
                       DefaultValuedAttr<I64Attr, "0">:$count);
  let assemblyFormat = [{
    $buffer `,` $storage `[` $indices `]` (`chunk` $first^ `count` $count)? attr-dict `:` type($buffer)
  }];
}
def Boa_ReleaseOp : Boa_QueueOp<"release", "transfer", [
    DeclareOpInterfaceMethods<Boa_AccessOpInterface, ["getRetained"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "frees a slot; with `retain` its contents stay for the next prefetch";
  let description = [{
    The next prefetch of exactly the same chunks finds a retained copy, in this run of
    the entry point or in the next one. It finds none if the chunks are written before, or
    if another entry point runs in between.
  }];
  let arguments = (ins Boa_BufferType:$buffer, Optional<I1>:$retain);
  let assemblyFormat = "$buffer (`retain` $retain^)? attr-dict `:` type($buffer)";
}

#endif // BOA_TRANSFER_OPS_TD
