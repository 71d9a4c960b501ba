//===- BlockRows.cpp - Wide products and what reduces them, by blocks -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Assumes straight-line kernels of products and linalg on tensors, after fusion. A
// chain is a product that is wider than what it is made of, and all that looks at
// its rows until nothing as wide is left: sums of rows, elementwise ops, products
// that end it, sums over rows. It is written out once for each block of rows, one
// block behind the other. What a block computes of a row is what was computed
// before; only sums over rows are added up block by block.
//
// Refuses, with a remark, chains of which an op needs other rows than its own.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/MemoryAccess.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace boa {
#define GEN_PASS_DEF_BLOCKROWS
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

/// Each is code of its own: no more than this, however large they are.
constexpr int64_t kMaxBlocks = 64;
/// What products like a number of rows to be a multiple of.
constexpr int64_t kRowMultiple = 16;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// Some of the rows, which are the leading dimensions.
struct RowBlock {
  SmallVector<int64_t> offsets, sizes;

  int64_t getCount() const { return llvm::product_of(sizes); }
  /// Of these rows, of a tensor that has all of them.
  RankedTensorType getType(RankedTensorType whole) const {
    SmallVector<int64_t> shape(sizes);
    llvm::append_range(shape, whole.getShape().drop_front(sizes.size()));
    return RankedTensorType::get(shape, whole.getElementType());
  }
  Value extract(OpBuilder &builder, Location loc, Value whole) const {
    auto [at, shape, strides] = getSlice(builder, whole);
    return tensor::ExtractSliceOp::create(builder, loc, whole, at, shape, strides);
  }
  Value insert(OpBuilder &builder, Location loc, Value part, Value whole) const {
    auto [at, shape, strides] = getSlice(builder, whole);
    return tensor::InsertSliceOp::create(builder, loc, part, whole, at, shape, strides);
  }

private:
  using Numbers = SmallVector<OpFoldResult>;
  std::tuple<Numbers, Numbers, Numbers> getSlice(OpBuilder &builder, Value whole) const {
    RankedTensorType part = getType(typeOf(whole));
    SmallVector<int64_t> at(offsets), strides(part.getRank(), 1);
    at.resize(part.getRank(), 0);
    MLIRContext *context = builder.getContext();
    return {getAsIndexOpFoldResult(context, at), getAsIndexOpFoldResult(context, part.getShape()),
            getAsIndexOpFoldResult(context, strides)};
  }
};

/// How blocks are to be.
struct Limits {
  int64_t most;              // rows that a block has, unless what follows is against it
  int64_t least = 1;         // rows that each has: at most `most`
  int64_t count = INT64_MAX; // blocks that there are: that many of `most` hold all rows
};

/// The sizes of the parts of one dimension: of two kinds at most, so that what is emitted for
/// a part is emitted twice at most. All but the last are alike and of a number that products
/// like; or, where the last would be too small, all are about alike.
SmallVector<int64_t> cutDimension(int64_t extent, const Limits &limits) {
  const int64_t parts = std::max<int64_t>(std::min({int64_t(llvm::divideCeil(extent, limits.most)),
                                                    extent / limits.least, limits.count}),
                                          1);
  const int64_t even = llvm::divideCeil(extent, parts);
  const int64_t step =
      std::min<int64_t>(std::max(limits.most, even), llvm::alignTo(even, kRowMultiple));
  SmallVector<int64_t> sizes(extent / step, step);
  if (int64_t last = extent % step)
    sizes.push_back(last);
  if (sizes.back() < limits.least) {
    sizes.assign(parts, extent / parts);
    for (int64_t i = 0; i < extent % parts; ++i)
      ++sizes[i];
  }
  return sizes;
}

/// One dimension is cut; of those before it each index is by itself, those behind it
/// are whole: so the rows of a block lie side by side.
SmallVector<RowBlock> divide(ArrayRef<int64_t> rows, const Limits &limits) {
  unsigned cut = rows.size() - 1;
  int64_t inner = 1;
  while (cut > 0 && inner * rows[cut] <= limits.most)
    inner *= rows[cut--];
  const int64_t outer = llvm::product_of(rows.take_front(cut));
  const SmallVector<int64_t> sizes = cutDimension(
      rows[cut], {std::max<int64_t>(limits.most / inner, 1),
                  int64_t(llvm::divideCeil(limits.least, inner)), limits.count / outer});

  SmallVector<RowBlock> blocks;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t at = 0;
    for (int64_t size : sizes) {
      RowBlock block{SmallVector<int64_t>(rows.size(), 0), SmallVector<int64_t>(rows)};
      for (int64_t i = cut, rest = o; i-- > 0; rest /= rows[i]) {
        block.offsets[i] = rest % rows[i];
        block.sizes[i] = 1;
      }
      block.offsets[cut] = at;
      block.sizes[cut] = size;
      at += size;
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

//===----------------------------------------------------------------------===//
// What may be computed block by block
//===----------------------------------------------------------------------===//

/// An op of a chain, and how it takes its operands.
struct Member {
  Operation *op;
  SmallVector<bool> byRow; // of each operand: row r of it for row r, else all of it
  bool sums = false;       // over rows, into what it is given; else row r of each result is row r's
};

bool beginsWith(RankedTensorType type, ArrayRef<int64_t> rows) {
  return type && type.getRank() >= int64_t(rows.size()) &&
         type.getShape().take_front(rows.size()) == rows;
}

std::optional<Member> describe(kernel::GemmOp op, ArrayRef<int64_t> rows) {
  // Whichever way round it is, rows of the one are columns of the other.
  if (op.getTransposeA() && op.getTransposeB())
    return std::nullopt;
  Member member{op, SmallVector<bool>(op->getNumOperands(), false), op.getTransposeA()};
  SmallVector<OpOperand *> byRow{&op.getAMutable()};
  byRow.push_back(member.sums ? &op.getBMutable() : &op.getCMutable());
  for (OpOperand *operand : byRow) {
    RankedTensorType type = typeOf(operand->get());
    if (!beginsWith(type, rows) || type.getRank() != int64_t(rows.size()) + 1)
      return std::nullopt;
    member.byRow[operand->getOperandNumber()] = true;
  }
  // A bias would be added, and a narrow sum be rounded, once for each block.
  if (member.sums && (op.getBias() || typeOf(op.getC()).getElementType().isBF16()))
    return std::nullopt;
  return member;
}

std::optional<Member> describe(linalg::LinalgOp op, ArrayRef<int64_t> rows) {
  unsigned count = rows.size();
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  if (!op.hasPureTensorSemantics() || extents.size() < count ||
      ArrayRef(extents).take_front(count) != rows ||
      !llvm::all_equal(ArrayRef(iterators).take_front(count)))
    return std::nullopt;
  Member member{op, {}, iterators[0] == utils::IteratorType::reduction};
  auto ofRows = [&](AffineExpr expr) {
    return llvm::any_of(llvm::seq(count), [&](unsigned d) { return expr.isFunctionOfDim(d); });
  };
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    bool byRow = llvm::any_of(map.getResults(), ofRows);
    if (byRow && (map.getNumResults() < count ||
                  map.getMajorSubMap(count) !=
                      AffineMap::getMultiDimIdentityMap(map.getNumDims(), op.getContext())
                          .getMajorSubMap(count) ||
                  llvm::any_of(map.getResults().drop_front(count), ofRows)))
      return std::nullopt;
    if (op.isDpsInit(&operand) &&
        (byRow == member.sums || (member.sums && getElementTypeOrSelf(operand.get()).isBF16())))
      return std::nullopt;
    member.byRow.push_back(byRow);
  }
  return member;
}

std::optional<Member> describe(Operation *op, ArrayRef<int64_t> rows) {
  if (auto product = dyn_cast<kernel::GemmOp>(op))
    return describe(product, rows);
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return describe(linalg, rows);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// A chain
//===----------------------------------------------------------------------===//

class Chain {
public:
  explicit Chain(kernel::GemmOp product)
      : product(product), type(typeOf(product.getResult()[0])), rows(type.getShape().drop_back()),
        widest(getElementBytes(type)) {}

  /// Finds what belongs to it; says why it cannot be computed block by block.
  std::optional<std::string> find();

  ArrayRef<int64_t> getRows() const { return rows; }
  /// Of what is widest in it.
  int64_t getBytesPerRow() const { return type.getShape().back() * widest; }

  /// Writes it out for each of the blocks; returns where the ops were that it erased.
  SmallVector<Operation *> rewrite(ArrayRef<RowBlock> blocks);

private:
  bool contains(Operation *op) const { return members.contains(op); }
  bool makes(Value value) const { return value.getDefiningOp() && contains(value.getDefiningOp()); }
  /// Of a user in whatever region, the op of the kernel.
  Operation *getOuter(Operation *user) const {
    return product->getBlock()->findAncestorOpInBlock(*user);
  }
  bool isUsedOutside(Value value) const {
    return llvm::any_of(value.getUsers(),
                        [&](Operation *user) { return !contains(getOuter(user)); });
  }
  bool add(Operation *op, SmallVectorImpl<Value> &wide);
  std::optional<std::string> check();
  bool looksAtOwnRow(Operation *op) const;
  /// Ops between the first and the last that are none of it and need what it makes.
  SmallVector<Operation *> getLate() const;
  void emit(OpBuilder &builder, const RowBlock &block, bool first);

  kernel::GemmOp product;
  RankedTensorType type;
  ArrayRef<int64_t> rows;
  int64_t widest; // bytes of an element
  llvm::DenseMap<Operation *, Member> members;
  SmallVector<Operation *> order;
  /// What has been computed so far of what is used outside.
  llvm::MapVector<Value, Value> whole;
};

std::string tell(Operation *op) { return op->getName().getStringRef().str() + " "; }

/// False if it is not known how. `wide`: what it makes that is as wide as the product.
bool Chain::add(Operation *op, SmallVectorImpl<Value> &wide) {
  if (contains(op))
    return true;
  std::optional<Member> member = describe(op, rows);
  if (!member)
    return false;
  // A product is where the chain ends, unless it is added to what is wide.
  auto gemm = dyn_cast<kernel::GemmOp>(op);
  bool ends = gemm && op != product && !makes(gemm.getC());
  for (Value result : op->getResults()) {
    RankedTensorType made = typeOf(result);
    if (member->sums || ends || made.getShape() != type.getShape())
      continue;
    wide.push_back(result);
    widest = std::max(widest, getElementBytes(made));
  }
  members.try_emplace(op, std::move(*member));
  return true;
}

SmallVector<Operation *> Chain::getLate() const {
  SmallVector<Operation *> late;
  llvm::SmallPtrSet<Operation *, 8> isLate;
  auto needsChain = [&](Operation *op) {
    auto walked = op->walk([&](Operation *inner) {
      return llvm::any_of(inner->getOperands(),
                          [&](Value v) {
                            Operation *from = v.getDefiningOp();
                            return from && (contains(from) || isLate.contains(from));
                          })
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    return walked.wasInterrupted();
  };
  for (Operation *op = order.front(); op != order.back(); op = op->getNextNode())
    if (!contains(op) && needsChain(op)) {
      late.push_back(op);
      isLate.insert(op);
    }
  return late;
}

std::optional<std::string> Chain::find() {
  SmallVector<Value> wide;
  if (!add(product, wide))
    return "its rows differ from the rows of its operands";
  while (true) {
    while (!wide.empty())
      for (Operation *user : wide.pop_back_val().getUsers())
        if (!add(getOuter(user), wide))
          return tell(getOuter(user)) + "does not take it row by row";
    order.clear();
    for (auto &entry : members)
      order.push_back(entry.first);
    llvm::sort(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    // What lies between two ops of the chain belongs to it.
    llvm::SmallPtrSet<Operation *, 8> between;
    SmallVector<Operation *> late = getLate();
    llvm::SmallPtrSet<Operation *, 8> isLate(late.begin(), late.end());
    for (Operation *op : order)
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (isLate.contains(operand.getDefiningOp()))
            between.insert(operand.getDefiningOp());
      });
    if (between.empty())
      return check();
    for (Operation *op : late)
      if (between.contains(op) && !add(op, wide))
        return tell(op) + "in the middle does not take rows one by one";
  }
}

/// Whether the body looks for nothing of the chain but elements of its own row, and for
/// the place of the row only to do so.
bool Chain::looksAtOwnRow(Operation *op) const {
  auto walked = op->walk([&](Operation *inner) {
    bool holds = true;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      holds = index.getDim() >= rows.size() || llvm::all_of(index->getUses(), [&](OpOperand &use) {
                auto extract = dyn_cast<tensor::ExtractOp>(use.getOwner());
                return extract && makes(extract.getTensor()) &&
                       use.getOperandNumber() == index.getDim() + 1;
              });
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      if (makes(extract.getTensor())) {
        holds = !members.at(extract.getTensor().getDefiningOp()).sums;
        for (unsigned d = 0; holds && d < rows.size(); ++d) {
          Value at = extract.getIndices()[d];
          auto index = at.getDefiningOp<linalg::IndexOp>();
          // The one place that there is may be said by itself.
          holds = index ? index.getDim() == d : rows[d] == 1 && isZeroInteger(at);
        }
      }
    } else if (inner != op) {
      holds = llvm::none_of(inner->getOperands(), [&](Value value) { return makes(value); });
    }
    return holds ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

/// Each takes what others make as they make it: row by row. One reduces rows: what
/// comes of a row is then less than a row.
std::optional<std::string> Chain::check() {
  bool reduces = false;
  for (Operation *op : order) {
    const Member &member = members.at(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!makes(operand.get()))
        continue;
      if (members.at(operand.get().getDefiningOp()).sums)
        return tell(op) + "needs a sum over all rows";
      if (!member.byRow[operand.getOperandNumber()])
        return tell(op) + "needs all rows at once";
    }
    if (!looksAtOwnRow(op))
      return tell(op) + "looks at other rows";
    if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
      reduces |=
          llvm::is_contained(ArrayRef(linalg.getIteratorTypesArray()).drop_front(rows.size()),
                             utils::IteratorType::reduction);
  }
  if (!reduces)
    return "nothing reduces its rows";
  return std::nullopt;
}

void Chain::emit(OpBuilder &builder, const RowBlock &block, bool first) {
  IRMapping made;                      // from results to those of this block
  llvm::DenseMap<Value, Value> slices; // of what comes from outside
  auto empty = [&](Location loc, RankedTensorType of) -> Value {
    RankedTensorType part = block.getType(of);
    return tensor::EmptyOp::create(builder, loc, part.getShape(), part.getElementType());
  };
  for (Operation *op : order) {
    Location loc = op->getLoc();
    const Member &member = members.at(op);
    auto style = cast<DestinationStyleOpInterface>(op);
    SmallVector<Value> operands;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      bool init = style.isDpsInit(&operand);
      Value sum = init ? whole.lookup(style.getTiedOpResult(&operand)) : Value();
      Operation *from = value.getDefiningOp();
      if (!member.byRow[operand.getOperandNumber()]) {
        operands.push_back(init ? sum : value);
      } else if (Value here = made.lookupOrNull(value)) {
        operands.push_back(here);
      } else if (init && isa_and_nonnull<tensor::EmptyOp>(from)) {
        operands.push_back(empty(loc, typeOf(value)));
      } else if (auto fill = dyn_cast_or_null<linalg::FillOp>(init ? from : nullptr)) {
        operands.push_back(
            linalg::FillOp::create(builder, loc, fill.getInputs()[0], empty(loc, typeOf(value)))
                .getResult(0));
      } else if (init) {
        operands.push_back(block.extract(builder, loc, sum ? sum : value));
      } else {
        Value &part = slices[value];
        if (!part)
          part = block.extract(builder, loc, value);
        operands.push_back(part);
      }
    }
    Operation *clone = builder.clone(*op, made);
    clone->setOperands(operands);
    if (auto gemm = dyn_cast<kernel::GemmOp>(clone))
      gemm.setAccumulate(gemm.getAccumulate() || (member.sums && !first));
    for (auto [result, part] : llvm::zip(op->getResults(), clone->getResults())) {
      if (!member.sums)
        part.setType(block.getType(typeOf(result)));
      auto it = whole.find(result);
      if (it != whole.end())
        it->second = member.sums ? Value(part) : block.insert(builder, loc, part, it->second);
    }
  }
}

SmallVector<Operation *> Chain::rewrite(ArrayRef<RowBlock> blocks) {
  SmallVector<Operation *> late = getLate();
  Operation *next = order.back()->getNextNode();
  OpBuilder builder(next);
  for (Operation *op : order)
    for (OpResult result : op->getResults()) {
      bool sums = members.at(op).sums;
      if (!sums && !isUsedOutside(result))
        continue;
      Value init = cast<DestinationStyleOpInterface>(op).getTiedOpOperand(result)->get();
      if (!sums &&
          (makes(init) || isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(init.getDefiningOp())))
        init = tensor::EmptyOp::create(builder, op->getLoc(), typeOf(result).getShape(),
                                       typeOf(result).getElementType());
      whole[result] = init;
    }
  for (const RowBlock &block : blocks)
    emit(builder, block, &block == blocks.begin());
  for (auto [result, value] : whole)
    result.replaceUsesWithIf(value,
                             [&](OpOperand &use) { return !contains(getOuter(use.getOwner())); });
  for (Operation *op : late)
    op->moveBefore(next);
  // And then what only they used: memory of all rows.
  llvm::SetVector<Operation *> last;
  auto erase = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *from = operand.getDefiningOp(); from && !contains(from))
        last.insert(from);
    op->erase();
  };
  llvm::for_each(llvm::reverse(order), erase);
  while (!last.empty())
    if (Operation *op = last.pop_back_val(); isOpTriviallyDead(op))
      erase(op);
  return order;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct BlockRows : boa::impl::BlockRowsBase<BlockRows> {
  using BlockRowsBase::BlockRowsBase;

  void runOnOperation() override {
    if (!getOperation()->hasAttr(kKernelAttr))
      return;
    SmallVector<kernel::GemmOp> products(getOperation().getBody().front().getOps<kernel::GemmOp>());
    llvm::DenseSet<Operation *> gone;
    for (kernel::GemmOp product : products)
      if (!gone.contains(product) && widens(product))
        consider(product, gone);
  }

  static bool widens(kernel::GemmOp product) {
    int64_t columns = typeOf(product.getC()).getShape().back();
    return !product.getTransposeA() && columns > typeOf(product.getA()).getShape().back();
  }

  void consider(kernel::GemmOp product, llvm::DenseSet<Operation *> &gone) {
    Location loc = product.getLoc();
    auto remark = remark::RemarkOpts::name("block-rows").category("boa-kernel");
    Chain chain(product);
    std::optional<std::string> why = chain.find();
    int64_t count = llvm::product_of(chain.getRows());
    Limits limits{rows};
    if (!rows) {
      limits.least = std::max<int64_t>(least, 1);
      limits.count = kMaxBlocks;
      limits.most = std::max({bytes / chain.getBytesPerRow(), limits.least,
                              int64_t(llvm::divideCeil(count, limits.count))});
    }
    SmallVector<RowBlock> blocks = divide(chain.getRows(), limits);
    if (blocks.size() == 1)
      return;
    if (why) {
      remark::missed(loc, remark) << remark::reason("{0}", *why);
      return;
    }
    remark::passed(loc, remark) << remark::metric("rows", count)
                                << remark::metric("blocks", int64_t(blocks.size()))
                                << remark::metric("of", blocks.front().getCount())
                                << remark::metric("to", blocks.back().getCount());
    gone.insert_range(chain.rewrite(blocks));
  }
};

} // namespace
