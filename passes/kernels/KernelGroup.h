//===- KernelGroup.h - What may be computed together ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rule of kernel.group, said once: the pass that forms groups asks it and the
// op's verifier checks it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_KERNELGROUP_H
#define BOA_PASSES_KERNELS_KERNELGROUP_H

#include "passes/kernels/KernelDialect.h"
#include "passes/kernels/MemoryAccess.h"

namespace boa {

/// The parts of a group: rows or columns, and their number.
struct GroupSpace {
  kernel::GroupAxis axis;
  llvm::SmallVector<int64_t> extents;

  /// Whether the group has one part, which is everything.
  bool isWhole() const { return extents.empty(); }
};

/// An op that a group may hold.
struct GroupMember {
  mlir::Operation *op;                // a TilingInterface
  llvm::SmallVector<int64_t> extents; // of all iteration dimensions
  unsigned leading;                   // parallel dimensions in front
  bool lastParallel;
  llvm::SmallVector<MemoryAccess> accesses;

  /// The member for an op; none if the op is a library call: it has no loops, or not over static
  /// memrefs.
  static std::optional<GroupMember> get(mlir::Operation *op);

  /// The parts of the op by itself. Its last dimension stays whole if
  /// there is another one, so that a row is worth vectorising.
  GroupSpace getSpace() const;
};

/// The members of a group, in order.
llvm::SmallVector<GroupMember> getMembers(kernel::GroupOp group);
/// The same, once what is not computed is moved before the group: of a temporary each row has its
/// own place. Returns those ops, too.
std::pair<llvm::SmallVector<GroupMember>, llvm::SmallVector<mlir::Operation *>>
takeApart(kernel::GroupOp group);

struct GroupFault {
  mlir::Operation *op;
  std::string reason; // "touches ..."
};

/// Why an op cannot join others that are a group of that space.
std::optional<GroupFault> findFault(const GroupSpace &space, const GroupMember &member,
                                    llvm::ArrayRef<GroupMember> others);

/// The first op that keeps these ops from being a group, and why.
std::optional<GroupFault> findFault(const GroupSpace &space, llvm::ArrayRef<GroupMember> members);

} // namespace boa

#endif // BOA_PASSES_KERNELS_KERNELGROUP_H
