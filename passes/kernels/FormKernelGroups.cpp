//===- FormKernelGroups.cpp - Ops that are computed together --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Greedily: each op joins the nearest group that it fits (KernelGroup.h says when)
// or begins one. It may jump over ops that it does not depend on to get there.
// Temporaries that only one group uses become the group's own.
//
// Assumes straight-line code on static memrefs; refuses what is neither memory,
// loops nor a call of a library.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelGroup.h"
#include "passes/kernels/KernelPasses.h"

namespace boa {
#define GEN_PASS_DEF_FORMKERNELGROUPS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// The most ops of one group. They become one function, whose optimisation takes time in the square
/// of its length. One read and one write of memory for so many ops cost nothing.
constexpr size_t kMostMembers = 64;

struct Group {
  GroupSpace space;
  SmallVector<GroupMember> members;
};

/// A group or a library op that an op would move past.
struct Predecessor {
  Operation *first;
  std::optional<unsigned> group;
  SmallVector<MemoryAccess> accesses;
};

/// The space of the group with `member` in it, or why it does not fit.
std::variant<GroupSpace, std::string> extendSpace(const Group &group, const GroupMember &member) {
  if (group.members.size() == kMostMembers)
    return "the group has " + std::to_string(kMostMembers) + " ops, the most that one may have";
  GroupSpace space = member.getSpace();
  // One part is one thread's: more ops in it would wait for one another.
  if (space.axis != group.space.axis || space.isWhole() || group.space.isWhole())
    return "the one is parallel over rows, the other is not";
  std::optional<GroupFault> fault;
  if (space.extents.size() < group.space.extents.size())
    space = group.space;
  else if (space.extents != group.space.extents)
    fault = findFault(space, group.members);
  if (!fault)
    fault = findFault(space, member, group.members);
  return fault ? std::variant<GroupSpace, std::string>(fault->reason) : space;
}

class Grouping {
public:
  ArrayRef<Group> getGroups() const { return groups; }

  void addLibraryOp(Operation *op) { order.push_back({op, std::nullopt, getMemoryAccesses(op)}); }

  /// Puts the member into the nearest group that it may join, or a new one.
  void add(const GroupMember &member) {
    std::string why;
    if (join(member, why))
      return;
    if (!why.empty())
      remark::missed(member.op->getLoc(), kernelRemark("form-groups"))
          << remark::reason("{0}", why);
    order.push_back({member.op, groups.size(), member.accesses});
    groups.push_back({member.getSpace(), {member}});
  }

private:
  /// Looks for the nearest group that the member fits. Past a library op it joins only a group
  /// whose results it reads: else it would be computed long before it is used. `why` says what kept
  /// it from the nearest group.
  bool join(const GroupMember &member, std::string &why) {
    bool far = false;
    auto setReason = [&](const std::string &reason) {
      if (why.empty())
        why = reason;
    };
    for (Predecessor &passed : llvm::reverse(order)) {
      bool depends = mayConflict(passed.accesses, member.accesses);
      far |= !passed.group;
      if (passed.group && (!far || depends)) {
        Group &group = groups[*passed.group];
        auto fitted = extendSpace(group, member);
        if (auto *space = std::get_if<GroupSpace>(&fitted)) {
          group.space = std::move(*space);
          group.members.push_back(member);
          llvm::append_range(passed.accesses, member.accesses);
          return true;
        }
        setReason(std::get<std::string>(fitted));
      }
      if (depends) {
        setReason("depends on " + passed.first->getName().getStringRef().str() + " before it");
        return false;
      }
    }
    return false;
  }

  SmallVector<Group> groups;
  SmallVector<Predecessor> order;
};

/// Moves the temporary and the views of it into the group, if nothing else uses it.
bool takeTemporary(memref::AllocOp alloc, kernel::GroupOp group) {
  SmallVector<Operation *> ops{alloc};
  for (unsigned i = 0; i < ops.size(); ++i)
    for (Operation *user : ops[i]->getUsers()) {
      if (group->isAncestor(user))
        continue;
      if (!isMemoryOp(user))
        return false;
      ops.push_back(user);
    }
  Block &body = group.getBodyRegion().front();
  auto first = llvm::find_if_not(body, [](Operation &op) { return isMemoryOp(&op); });
  for (Operation *op : ops)
    op->moveBefore(&body, first);
  return true;
}

void createGroup(OpBuilder &builder, const Group &group) {
  Operation *point = group.members.front().op;
  for (const GroupMember &member : group.members)
    hoistMemory(member.op, point);
  builder.setInsertionPoint(point);
  auto op =
      kernel::GroupOp::create(builder, point->getLoc(), group.space.axis, group.space.extents);
  Block &body = op.getBodyRegion().emplaceBlock();
  llvm::SetVector<Value> roots;
  for (const GroupMember &member : group.members) {
    member.op->moveBefore(&body, body.end());
    for (const MemoryAccess &access : member.accesses)
      roots.insert(access.root);
  }
  int64_t own = 0;
  for (Value root : roots)
    if (auto alloc = root.getDefiningOp<memref::AllocOp>())
      own += takeTemporary(alloc, op);
  remark::passed(op.getLoc(), kernelRemark("form-groups"))
      << remark::metric("axis", kernel::stringifyGroupAxis(group.space.axis))
      << remark::metric("ops", int64_t(group.members.size()))
      << remark::metric("parts", op.getCount()) << remark::metric("temporaries", own);
}

struct FormKernelGroups : boa::impl::FormKernelGroupsBase<FormKernelGroups> {
  void runOnOperation() override {
    KernelOp func = getOperation();
    Grouping grouping;
    for (Operation &op : func.getBody().front().without_terminator()) {
      if (isMemoryOp(&op))
        continue;
      if (std::optional<GroupMember> member = GroupMember::get(&op)) {
        grouping.add(*member);
      } else if (!op.getNumRegions() && isa<DestinationStyleOpInterface>(op)) {
        grouping.addLibraryOp(&op);
      } else {
        op.emitOpError("is not expected in a kernel here");
        return signalPassFailure();
      }
    }
    OpBuilder builder(func);
    for (const Group &group : grouping.getGroups())
      createGroup(builder, group);
  }
};

} // namespace
