//===- StorageOp.td - boa.storage --------------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_STORAGE_OP_TD
#define BOA_STORAGE_OP_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def Boa_StorageOp : Boa_Op<"storage", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "an array of equal entries and where their chunks live";
  let description = [{
    ```mlir
    boa.storage @checkpoints[7, 4] : tensor<8x256x384xf32> on ssd role checkpoints
    boa.storage @weights.block[6] : tensor<1779712xf32> on host 4, ssd role weights chunks 16 persistent
    ```
    In each entry of the second storage, 4 chunks live in host memory and 12 on SSD. Entries may
    differ: `on [0 to 2: host, 2 to 6: host 4, ssd]` keeps the first two in host memory.
    A commit contains the `persistent` storages: weights and the optimizer's state. It
    contains no gradients: @drain applies the delayed updates before. `slots` are the
    storage's pools in the arena, set by --boa-assign-buffers.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$dims,
                       TypeAttr:$type, Boa_HomesAttr:$homes,
                       Boa_Role:$role, DefaultValuedAttr<I64Attr, "1">:$chunks,
                       UnitAttr:$persistent, OptionalAttr<Boa_PoolsAttr>:$pools);
  let assemblyFormat = [{
    $sym_name `` $dims `:` $type `on` custom<Homes>($homes) `role` $role (`chunks` $chunks^)?
    (`persistent` $persistent^)? (`slots` `` custom<Pools>($pools)^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getEntryType() {
      return ::mlir::cast<::mlir::RankedTensorType>(getType());
    }
    int64_t getEntryCount() {
      int64_t count = 1;
      for (int64_t dim : getDims()) count *= dim;
      return count;
    }
    /// The label by which traffic is counted: the role, or the name of the input, or of the
    /// optimizer's state.
    ::llvm::StringRef getLabel();

    /// Bytes of an entry, and of a chunk: whole blocks.
    int64_t getEntryBytes() { return getChunkBytes() * getChunks(); }
    int64_t getChunkBytes();

    /// Chunks [first, first + count) of an entry live in `tier`.
    struct HomeRange {
      ::boa::Tier tier;
      int64_t first, count;
    };
    /// The homes of an entry in order, one after another. They cover the entry.
    ::llvm::SmallVector<HomeRange, 2> getHomeRanges(int64_t entry);
    /// The ranges of chunks [first, first + count).
    ::llvm::SmallVector<HomeRange, 2> getHomeRanges(int64_t entry, int64_t first, int64_t count);
    /// Entries [first, first + count) live alike.
    struct EntryRange {
      int64_t first, count;
    };
    /// The ranges of entries in order, one after another. They cover the storage.
    ::llvm::SmallVector<EntryRange, 2> getEntryRanges();
    /// Whether a chunk lives there.
    bool livesOn(::boa::Tier tier);
    /// The same homes for all entries.
    static ::mlir::ArrayAttr makeHomes(::llvm::ArrayRef<::boa::HomeAttr> homes);
    /// Whether the entries hold values that the program did not write: trained state,
    /// or what the trainer fills in for a step: inputs, gradients of losses.
    bool isLiveIn();
    /// Whether written values are read after the program.
    bool isLiveOut();
  }];
}

#endif // BOA_STORAGE_OP_TD
