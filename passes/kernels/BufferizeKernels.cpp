//===- BufferizeKernels.cpp - One-shot bufferization of kernels -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes kernels bound by --kernel-bind-arguments. What upstream's analysis does
// not see is left as copies for --kernel-elide-copies.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/AngleTables.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Interfaces/SubsetOpInterface.h"

namespace boa {
#define GEN_PASS_DEF_BUFFERIZEKERNELS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;

namespace {

/// The most ops in a row that overwrite one tensor. Upstream's analysis compares all pairs of
/// accesses to its memory for each of them, so without a limit a chain would take time in the cube
/// of its length.
constexpr int64_t kMostInPlace = 32;

/// Gives every use of an op at the top of the kernel an op of its own.
void unshare(RewriterBase &rewriter, Operation *op) {
  if (op->use_empty())
    return;
  for (OpOperand &use : llvm::make_early_inc_range(llvm::drop_begin(op->getUses()))) {
    rewriter.setInsertionPoint(op->getBlock()->findAncestorOpInBlock(*use.getOwner()));
    Operation *copy = rewriter.clone(*op);
    rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(copy->getResult(0)); });
  }
}

/// Unshares the ops that tensors begin with. A shared tensor.empty or linalg.fill would be one
/// buffer with a long life, copied at each use. Of an argument that is only read, upstream's
/// analysis looks at all uses for each of them.
void unshareOrigins(RewriterBase &rewriter, boa::KernelOp func) {
  for (Operation *op : llvm::to_vector(func.getOps<linalg::FillOp>()))
    unshare(rewriter, op);
  for (Operation *op : llvm::to_vector(func.getOps<tensor::EmptyOp>()))
    unshare(rewriter, op);
  for (auto op : llvm::to_vector(func.getOps<bufferization::ToTensorOp>()))
    if (!op.getWritable())
      unshare(rewriter, op);
}

/// Whether the op is the last to use `value`, in its block.
bool isLastUse(Value value, Operation *op) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == op || (user->getBlock() == op->getBlock() && user->isBeforeInBlock(op));
  });
}

/// Whether an op writes an element of its first result where it reads the one of an input.
bool isWrittenWhereRead(linalg::GenericOp op, OpOperand *input) {
  OpOperand *init = op.getDpsInitOperand(0);
  return op.getNumParallelLoops() == op.getNumLoops() &&
         input->get().getType() == init->get().getType() &&
         op.getMatchingIndexingMap(input) == op.getMatchingIndexingMap(init);
}

/// Has elementwise ops write over an operand that nothing needs afterwards: the
/// workspace of a kernel counts against the memory of the machine. It prefers an accumulator,
/// since the sum belongs there.
void reuseDeadOperands(RewriterBase &rewriter, boa::KernelOp func) {
  llvm::DenseMap<Value, int64_t> inPlace; // how many ops in a row overwrote one tensor for it
  func.walk([&](linalg::GenericOp op) {
    if (op->getNumResults() != 1 || op.getNumParallelLoops() != op.getNumLoops())
      return;
    OpOperand *init = op.getDpsInitOperand(0);
    auto reuse = [&](OpOperand *input) {
      rewriter.modifyOpInPlace(op, [&] { init->set(input->get()); });
    };
    auto isDead = [&](OpOperand *input) {
      return isWrittenWhereRead(op, input) && isLastUse(input->get(), op);
    };
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto accumulator = input->get().getDefiningOp<bufferization::ToTensorOp>();
      if (accumulator && accumulator.getWritable() && isDead(input) &&
          init->get().getDefiningOp<tensor::EmptyOp>())
        return reuse(input);
    }
    // Results and parts of a whole have their place already.
    auto placed = [](Operation *user) {
      return isa<bufferization::MaterializeInDestinationOp, tensor::InsertSliceOp>(user);
    };
    if (!init->get().getDefiningOp<tensor::EmptyOp>() || llvm::any_of(op->getUsers(), placed))
      return;
    for (OpOperand *input : op.getDpsInputOperands()) {
      const int64_t before = inPlace.lookup(input->get());
      if (before < kMostInPlace && input->get().getDefiningOp<DestinationStyleOpInterface>() &&
          isDead(input)) {
        inPlace[op.getResult(0)] = before + 1;
        return reuse(input);
      }
    }
  });
}

/// Cuts a long sum, each tensor of which only the next op uses. Its parts lie in one place, which
/// is that of an accumulator or memory of its own. Upstream does not know that they do.
void cutSum(RewriterBase &rewriter, Operation *origin) {
  auto argument = dyn_cast<bufferization::ToTensorOp>(origin);
  Value memory = argument ? argument.getBuffer() : Value();
  Value sum = origin->getResult(0);
  const auto type = cast<RankedTensorType>(sum.getType());
  for (int64_t count = 1; sum.hasOneUse(); ++count) {
    OpOperand &use = *sum.use_begin();
    auto writer = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
    if (!writer || !writer.isDpsInit(&use) || isa<tensor::InsertSliceOp>(writer) ||
        writer->getBlock() != origin->getBlock())
      return;
    sum = writer.getTiedOpResult(&use);
    if (count % kMostInPlace != 0)
      continue;
    if (!memory) {
      rewriter.setInsertionPoint(origin);
      memory = memref::AllocOp::create(rewriter, origin->getLoc(),
                                       MemRefType::get(type.getShape(), type.getElementType()));
    }
    rewriter.setInsertionPointAfter(writer);
    auto end = bufferization::MaterializeInDestinationOp::create(
        rewriter, writer.getLoc(), /*result=*/Type(), sum, memory, /*restrict=*/true,
        /*writable=*/true);
    Value rest = bufferization::ToTensorOp::create(rewriter, writer.getLoc(), type, memory,
                                                   /*restrict=*/true, /*writable=*/true);
    rewriter.replaceAllUsesExcept(sum, rest, end);
    sum = rest;
  }
}

void cutSums(RewriterBase &rewriter, boa::KernelOp func) {
  SmallVector<Operation *> origins(func.getOps<tensor::EmptyOp>());
  for (auto argument : func.getOps<bufferization::ToTensorOp>())
    if (argument.getWritable())
      origins.push_back(argument);
  for (Operation *origin : origins)
    cutSum(rewriter, origin);
}

/// Whether the op describes a tensor in another way: a part of it, or another shape.
bool isView(Operation *op) {
  return isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp,
             tensor::CastOp>(op);
}

/// The value that may lie in the memory of a tensor behind this use: a view, or the result that
/// overwrites it. Null if the tensor is only read.
Value getNext(OpOperand &use) {
  if (isView(use.getOwner()))
    return use.getOwner()->getResult(0);
  auto writer = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return writer && writer.isDpsInit(&use) ? Value(writer.getTiedOpResult(&use)) : Value();
}

/// Whether all ops that read `value`, or a value in its memory, stand before `op`. Uses by `next`
/// do not count.
bool isReadBefore(Value value, Operation *op, Operation *next = nullptr) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (user == next)
      return true;
    if (user == op || user->getBlock() != op->getBlock() || op->isBeforeInBlock(user))
      return false;
    Value result = getNext(use);
    return !result || isReadBefore(result, op);
  });
}

/// The tensor that an op overwrites or describes for this result; null if it is not known.
Value getPrevious(OpResult result) {
  Operation *op = result.getOwner();
  if (auto writer = dyn_cast<DestinationStyleOpInterface>(op))
    return writer.getTiedOpOperand(result)->get();
  if (isView(op))
    return op->getOperand(0);
  return {};
}

/// Whether two parts of a tensor have no element in common.
bool areDisjoint(tensor::InsertSliceOp a, tensor::InsertSliceOp b) {
  auto isSame = [](Value, Value) { return true; }; // both are of one tensor
  return cast<SubsetOpInterface>(*a).operatesOnDisjointSubset(cast<SubsetOpInterface>(*b), isSame);
}

bool hasStaticPlace(tensor::InsertSliceOp op) {
  return op.hasUnitStride() && !ShapedType::isDynamicShape(op.getStaticOffsets()) &&
         !ShapedType::isDynamicShape(op.getStaticSizes()) &&
         op.getSourceType().getRank() == op.getType().getRank();
}

/// Whether an op only reads a tensor: it is no view of it, and puts it nowhere else.
bool isRead(OpOperand &use) {
  auto reader = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  return reader && reader.isDpsInput(&use) &&
         !isa<bufferization::MaterializeInDestinationOp, tensor::InsertSliceOp>(reader);
}

/// The ops that make a part in memory of its own, the last one first. There are none if another op
/// may write there, too.
SmallVector<Operation *> getWriters(tensor::InsertSliceOp part) {
  SmallVector<Operation *> writers = {part};
  for (Value value = part.getSource(); value;) {
    if (!llvm::all_of(value.getUses(), [&](OpOperand &use) {
          return use.getOwner() == writers.back() || isRead(use);
        }))
      return {};
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      break;
    writers.push_back(result.getOwner());
    value = getPrevious(result);
  }
  return writers;
}

/// The parts that are inserted into an empty tensor, one after the other, before anything reads it.
SmallVector<tensor::InsertSliceOp> getParts(tensor::EmptyOp empty) {
  SmallVector<tensor::InsertSliceOp> parts;
  for (Value whole = empty; whole.hasOneUse(); whole = parts.back()) {
    auto part = dyn_cast<tensor::InsertSliceOp>(*whole.user_begin());
    if (!part || part.getDest() != whole || part->getBlock() != empty->getBlock() ||
        !hasStaticPlace(part) || getWriters(part).empty() ||
        !llvm::all_of(parts, [&](auto other) { return areDisjoint(part, other); }))
      break;
    parts.push_back(part);
  }
  return parts;
}

/// The first op that needs memory for a part.
Operation *getFirstWriter(tensor::InsertSliceOp part) {
  SmallVector<Operation *> writers = getWriters(part);
  return isa<tensor::EmptyOp>(writers.back()) ? writers[writers.size() - 2] : part;
}

/// Gives a tensor that is made of parts, and then only read, its memory here, and each part its
/// place in it. In a chain of n insertions, upstream's analysis compares all pairs of accesses
/// for each of n decisions, and looks through the chain for each pair.
void placeParts(RewriterBase &rewriter, boa::KernelOp func) {
  for (auto empty : llvm::make_early_inc_range(func.getOps<tensor::EmptyOp>())) {
    SmallVector<tensor::InsertSliceOp> parts = getParts(empty);
    if (parts.empty() || !llvm::all_of(parts.back()->getUses(), isRead))
      continue;
    SmallVector<Operation *> writers = llvm::map_to_vector(parts, getFirstWriter);
    Operation *first = empty;
    for (Operation *writer : writers)
      if (writer->isBeforeInBlock(first))
        first = writer;
    rewriter.setInsertionPoint(first);
    const RankedTensorType type = empty.getType();
    Value memory = memref::AllocOp::create(rewriter, empty.getLoc(),
                                           MemRefType::get(type.getShape(), type.getElementType()));
    for (auto [part, writer] : llvm::zip(parts, writers)) {
      rewriter.setInsertionPoint(writer);
      Value place =
          memref::SubViewOp::create(rewriter, part.getLoc(), memory, part.getMixedOffsets(),
                                    part.getMixedSizes(), part.getMixedStrides());
      rewriter.setInsertionPoint(part);
      bufferization::MaterializeInDestinationOp::create(rewriter, part.getLoc(), /*result=*/Type(),
                                                        part.getSource(), place,
                                                        /*restrict=*/true, /*writable=*/true);
    }
    Value whole = bufferization::ToTensorOp::create(rewriter, empty.getLoc(), type, memory,
                                                    /*restrict=*/true);
    rewriter.replaceAllUsesWith(parts.back().getResult(), whole);
    for (tensor::InsertSliceOp part : llvm::reverse(parts))
      rewriter.eraseOp(part);
  }
}

/// Computes results where they belong. Upstream takes the memory of a result to be apart from all
/// other tensors. So it would write there before an accumulator is read that lies there. It would
/// also compute a tensor there that is read after the result has replaced it. Both are left out.
LogicalResult placeResults(RewriterBase &rewriter, boa::KernelOp func,
                           const bufferization::OneShotBufferizationOptions &options) {
  llvm::DenseMap<Value, SmallVector<Value>> arguments; // by their memory: a sum may be cut
  func.walk([&](bufferization::ToTensorOp argument) {
    arguments[argument.getBuffer()].push_back(argument.getResult());
  });
  auto isFree = [&](bufferization::MaterializeInDestinationOp end, tensor::EmptyOp empty,
                    Operation *user) {
    for (Value argument : arguments.lookup(end.getDest()))
      for (OpOperand &use : argument.getUses()) {
        auto generic = dyn_cast<linalg::GenericOp>(user);
        Value next = getNext(use);
        if (use.getOwner() == user
                ? !generic || !isWrittenWhereRead(generic, &use)
                : !use.getOwner()->isBeforeInBlock(user) || (next && !isReadBefore(next, user)))
          return false;
      }
    for (Value value = end.getSource();;) {
      auto result = dyn_cast<OpResult>(value);
      value = result ? getPrevious(result) : Value();
      if (!value)
        return false;
      if (value == empty.getResult())
        return true;
      if (!isReadBefore(value, end, /*next=*/result.getOwner()))
        return false;
    }
  };
  auto extract = [&](RewriterBase &builder, SubsetInsertionOpInterface op, tensor::EmptyOp empty,
                     Operation *user) -> Value {
    auto end = dyn_cast<bufferization::MaterializeInDestinationOp>(op.getOperation());
    if (end && !isFree(end, empty, user))
      return {};
    return bufferization::buildSubsetExtraction(builder, op, empty, user);
  };
  bufferization::OneShotAnalysisState state(func, options);
  if (failed(bufferization::analyzeOp(func, state)))
    return failure();
  return bufferization::eliminateEmptyTensors(rewriter, func, state, extract);
}

/// Counts the bytes of the constants that became globals, and of the tables: the plan of memory
/// includes them.
void countConstants(ModuleOp module) {
  int64_t bytes = 0;
  for (Attribute table : boa::getAllTables(module))
    bytes += boa::TableBytes(boa::getTable(table), boa::getElementBytes(boa::getTableType(table)));
  for (auto global : module.getOps<memref::GlobalOp>())
    bytes += boa::getBytes(global.getType());
  if (bytes > 0)
    module->setAttr(boa::kConstantsAttr, Builder(module.getContext()).getI64IntegerAttr(bytes));
}

struct BufferizeKernels : boa::impl::BufferizeKernelsBase<BufferizeKernels> {
  void runOnOperation() override {
    bufferization::OneShotBufferizationOptions options;
    int64_t copies = 0;
    options.memCpyFn = [&](OpBuilder &builder, Location loc, Value from, Value to) {
      // An accumulator is its own destination.
      if (from != to) {
        linalg::makeMemRefCopyOp(builder, loc, from, to);
        ++copies;
      }
      return success();
    };
    IRRewriter rewriter(&getContext());
    for (auto func : getOperation().getOps<boa::KernelOp>()) {
      unshareOrigins(rewriter, func);
      reuseDeadOperands(rewriter, func);
      placeParts(rewriter, func);
      cutSums(rewriter, func);
      bufferization::BufferizationState state;
      copies = 0;
      if (failed(placeResults(rewriter, func, options)) ||
          failed(bufferization::runOneShotBufferize(func, options, state)))
        return signalPassFailure();
      int64_t temporaries = 0;
      func.walk([&](memref::AllocOp) { ++temporaries; });
      remark::analysis(func.getLoc(), boa::kernelRemark("bufferize"))
          << "in @" << func.getName() << ": " << remark::metric("temporaries", temporaries)
          << remark::metric("copies", copies);
    }
    countConstants(getOperation());
  }
};

} // namespace
