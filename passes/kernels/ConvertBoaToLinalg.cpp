//===- ConvertBoaToLinalg.cpp - Compute ops to linalg on tensors ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise ops, shape ops and rotary embedding; norms and cross-entropy are in
// ConvertRowOps.cpp, table lookup in ConvertVocabularyOps.cpp. Assumes that --convert-boa-to-blas
// ran before (no library op is touched here) and static shapes. Fails if a compute op is left.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/ConvertBoaToLinalg.h"
#include "dialect/Boa.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/LinalgBuilder.h"
#include "passes/kernels/NormalDistribution.h"

#include <cmath>

namespace boa {
#define GEN_PASS_DEF_CONVERTBOATOLINALG
#include "passes/kernels/KernelPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;

namespace {

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

LogicalResult replaceElementwise(PatternRewriter &rewriter, Operation *op, ArrayRef<Input> inputs,
                                 Body body) {
  LinalgBuilder linalg(rewriter, op->getLoc());
  rewriter.replaceOp(op, linalg.elementwise(tensorOf(op->getResult(0)), inputs, body));
  return success();
}

struct CastToLinalg : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    Type to = tensorOf(op.getY()).getElementType();
    unsigned have = tensorOf(op.getX()).getElementTypeBitWidth();
    unsigned want = to.getIntOrFloatBitWidth();
    return replaceElementwise(rewriter, op, {op.getX()}, [&](ArrayRef<Scalar> a) {
      // Between bf16 and f64 by way of f32, which has instructions.
      Scalar value = a[0];
      SmallVector<Type> steps{to};
      if (have + want == 16 + 64)
        steps.insert(steps.begin(), rewriter.getF32Type());
      for (Type step : steps)
        value = want > have ? value.make<arith::ExtFOp>(step, Value(value))
                            : value.make<arith::TruncFOp>(step, Value(value));
      return value;
    });
  }
};

// gelu(x) = x s with s = sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): the
// tanh form, (1 + tanh u) / 2 = s, with one exponential.
struct GeluTerms {
  Scalar s;
  Scalar slope; // of 2 u
  explicit GeluTerms(Scalar x) : s(x), slope(x) {
    const double c = 2 * std::sqrt(2 / M_PI);
    Scalar square = x * x;
    Scalar minus = x * (square * (-c * 0.044715) + -c);
    s = 1.0 / (minus.exp() + 1.0);
    slope = square * (3 * c * 0.044715) + c;
  }
};

Scalar sigmoid(Scalar x) { return 1.0 / ((x * -1.0).exp() + 1.0); }

/// An element of the result, of an element of each operand. An operand of fewer dimensions is
/// broadcast over the leading ones.
template <typename OpTy> using Formula = Scalar (*)(OpTy op, ArrayRef<Scalar> operands);

template <typename OpTy> struct FormulaToLinalg : OpRewritePattern<OpTy> {
  FormulaToLinalg(MLIRContext *context, Formula<OpTy> formula)
      : OpRewritePattern<OpTy>(context), formula(formula) {}
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    auto inputs = llvm::map_to_vector(
        op->getOperands(), [](Value operand) { return Input(operand, Indexing::Trailing); });
    return replaceElementwise(rewriter, op, inputs,
                              [&](ArrayRef<Scalar> operands) { return formula(op, operands); });
  }
  Formula<OpTy> formula;
};

template <typename OpTy> void add(RewritePatternSet &patterns, Formula<OpTy> formula) {
  patterns.add<FormulaToLinalg<OpTy>>(patterns.getContext(), formula);
}

void populateFormulas(RewritePatternSet &patterns) {
  using Operands = ArrayRef<Scalar>;
  add<AddOp>(patterns, [](AddOp, Operands a) { return a[0] + a[1]; });
  add<MulOp>(patterns, [](MulOp, Operands a) { return a[0] * a[1]; });
  add<ScaleOp>(patterns,
               [](ScaleOp op, Operands a) { return a[0] * op.getFactor().convertToDouble(); });
  add<GeluOp>(patterns, [](GeluOp op, Operands a) {
    return a[0] * (op.getExact() ? computeNormal(a[0]).distribution : GeluTerms(a[0]).s);
  });
  add<GeluGradOp>(patterns, [](GeluGradOp op, Operands a) {
    if (op.getExact()) {
      Normal normal = computeNormal(a[0]);
      return a[1] * (normal.distribution + a[0] * normal.density);
    }
    GeluTerms t(a[0]);
    return a[1] * (t.s + a[0] * t.s * (1.0 - t.s) * t.slope);
  });
  add<SiluOp>(patterns, [](SiluOp, Operands a) { return a[0] * sigmoid(a[0]); });
  add<SiluGradOp>(patterns, [](SiluGradOp, Operands a) {
    Scalar s = sigmoid(a[0]);
    return a[1] * (s * (a[0] * (1.0 - s) + 1.0));
  });
}

/// Fills a tensor of one value. As a constant, it would be in the program, element by element.
struct SplatToFill : OpRewritePattern<arith::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, PatternRewriter &rewriter) const override {
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!splat || !type || !isa<FloatType>(type.getElementType()))
      return failure();
    rewriter.replaceOp(op, LinalgBuilder(rewriter, op.getLoc())
                               .filled(type, splat.getSplatValue<APFloat>().convertToDouble()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// A slice of `size` columns from `offset` of the last dimension.
struct Columns {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  Columns(OpBuilder &b, ArrayRef<int64_t> shape, int64_t offset, int64_t size) {
    for (int64_t extent : shape) {
      offsets.push_back(b.getIndexAttr(0));
      sizes.push_back(b.getIndexAttr(extent));
      strides.push_back(b.getIndexAttr(1));
    }
    offsets.back() = b.getIndexAttr(offset);
    sizes.back() = b.getIndexAttr(size);
  }
};

struct SplitToSlices : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SplitOp op, PatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    int64_t offset = 0;
    for (Value part : op.getParts()) {
      int64_t size = tensorOf(part).getShape().back();
      Columns columns(rewriter, tensorOf(op.getX()).getShape(), offset, size);
      parts.push_back(tensor::ExtractSliceOp::create(
          rewriter, op.getLoc(), op.getX(), columns.offsets, columns.sizes, columns.strides));
      offset += size;
    }
    rewriter.replaceOp(op, parts);
    return success();
  }
};

struct ConcatToSlices : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorOf(op.getY());
    Value y = LinalgBuilder(rewriter, op.getLoc()).empty(type);
    int64_t offset = 0;
    for (Value part : op.getParts()) {
      int64_t size = tensorOf(part).getShape().back();
      Columns columns(rewriter, type.getShape(), offset, size);
      y = tensor::InsertSliceOp::create(rewriter, op.getLoc(), part, y, columns.offsets,
                                        columns.sizes, columns.strides);
      offset += size;
    }
    rewriter.replaceOp(op, y);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Rotary embedding, table lookup
//===----------------------------------------------------------------------===//

/// The cosines or sines of t * frequency, [time, d / 2]. The frequencies are computed here: in late
/// positions their last bit shows, and no two machines need agree on it.
Value angleTable(OpBuilder &b, Location loc, kernel::AngleFunction function, int64_t time,
                 ArrayRef<double> frequencies, Type element) {
  auto type = RankedTensorType::get({time, int64_t(frequencies.size())}, element);
  return kernel::AnglesOp::create(b, loc, type, function, b.getF64ArrayAttr(frequencies));
}

Scalar widen(Scalar value, Type type) {
  return value.getType() == type ? value : value.make<arith::ExtFOp>(type, Value(value));
}

Scalar narrow(Scalar value, Type type) {
  return value.getType() == type ? value : value.make<arith::TruncFOp>(type, Value(value));
}

/// The rows of a table at these positions [batch, time].
Value rowsOf(OpBuilder &b, Location loc, Value table, Value positions) {
  SmallVector<int64_t> shape(tensorOf(positions).getShape());
  shape.push_back(tensorOf(table).getShape().back());
  auto type = RankedTensorType::get(shape, tensorOf(table).getElementType());
  return LinalgBuilder(b, loc).elementwise(
      type, {{positions, Indexing::Leading}}, [&](ArrayRef<Scalar> a) {
        Value row = a[0].toIndex(a[0]);
        Value column = a[0].make<linalg::IndexOp>(type.getRank() - 1);
        return extractElement(a[0], table, {row, column});
      });
}

/// Turns pairs of columns. x is seen as [batch, time, heads, 2, d / 2]: y_0 = x_0 cos - x_1 sin and
/// y_1 = x_1 cos + x_0 sin, each a slice of the result. A bf16 is widened before and rounded after,
/// in the same iteration: no pass over memory is made for that.
struct RotaryToLinalg : OpRewritePattern<RotaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RotaryOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType type = tensorOf(op.getX());
    Type element = type.getElementType();
    Type wide = getSumType(type).getElementType();
    int64_t batch = type.getDimSize(0), time = type.getDimSize(1);
    int64_t heads = op.getHeads(), half = type.getDimSize(2) / heads / 2;
    SmallVector<double> angles = op.getFrequencies();
    Value positions = op.getPositions();
    const int64_t rows = positions ? int64_t(*op.getLength()) : time;
    auto tableOf = [&](kernel::AngleFunction function) {
      Value table = angleTable(rewriter, loc, function, rows, angles, wide);
      return positions ? rowsOf(rewriter, loc, table, positions) : table;
    };
    Value cos = tableOf(kernel::AngleFunction::Cosine);
    Value sin = tableOf(kernel::AngleFunction::Sine);

    auto pairs = RankedTensorType::get({batch, time, heads, 2, half}, element);
    auto part = RankedTensorType::get({batch, time, heads, half}, element);
    SmallVector<ReassociationIndices> grouping{{0}, {1}, {2, 3, 4}};
    Value x = tensor::ExpandShapeOp::create(rewriter, loc, pairs, op.getX(), grouping);
    Value y = LinalgBuilder(rewriter, loc).empty(pairs);

    SmallVector<OpFoldResult> sizes, strides(5, rewriter.getIndexAttr(1));
    for (int64_t extent : {batch, time, heads, int64_t(1), half})
      sizes.push_back(rewriter.getIndexAttr(extent));
    auto offsets = [&](int64_t which) {
      SmallVector<OpFoldResult> result(5, rewriter.getIndexAttr(0));
      result[3] = rewriter.getIndexAttr(which);
      return result;
    };
    Value halves[2];
    for (int64_t i : {0, 1})
      halves[i] =
          tensor::ExtractSliceOp::create(rewriter, loc, part, x, offsets(i), sizes, strides);
    AffineMap all = rewriter.getMultiDimIdentityMap(4);
    SmallVector<AffineExpr> ofAngle{rewriter.getAffineDimExpr(1), rewriter.getAffineDimExpr(3)};
    if (positions)
      ofAngle.insert(ofAngle.begin(), rewriter.getAffineDimExpr(0));
    AffineMap angle = AffineMap::get(4, 0, ofAngle, rewriter.getContext());
    SmallVector<utils::IteratorType> parallel(4, utils::IteratorType::parallel);
    for (int64_t i : {0, 1}) {
      Value empty = LinalgBuilder(rewriter, loc).empty(part);
      auto rotated = linalg::GenericOp::create(
          rewriter, loc, TypeRange(part), ValueRange{halves[i], halves[1 - i], cos, sin}, empty,
          ArrayRef<AffineMap>{all, all, angle, angle, all}, parallel,
          [&](OpBuilder &b, Location l, ValueRange args) {
            Scalar mine = widen(Scalar(b, l, args[0]), wide);
            Scalar other = widen(Scalar(b, l, args[1]), wide);
            Scalar c(b, l, args[2]), s(b, l, args[3]);
            const bool back = op.getInverse(); // by the opposite angle
            Scalar y = (i == 0) != back ? mine * c - other * s : mine * c + other * s;
            linalg::YieldOp::create(b, l, Value(narrow(y, element)));
          });
      y = tensor::InsertSliceOp::create(rewriter, loc, rotated.getResult(0), y, offsets(i), sizes,
                                        strides);
    }
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(op, type, y, grouping);
    return success();
  }
};

/// A mixer of 32 bits: each bit of x changes each bit of the result with probability near 1/2. The
/// constants are those of lowbias32 (Wellons 2018).
Scalar mix(Scalar x) {
  auto constant = [&](uint32_t value) {
    return x.make<arith::ConstantOp>(IntegerAttr::get(x.getType(), APInt(32, value)));
  };
  auto fold = [&](Scalar y, uint32_t by) {
    return y.make<arith::XOrIOp>(Value(y), y.make<arith::ShRUIOp>(Value(y), constant(by)));
  };
  auto times = [&](Scalar y, uint32_t by) { return y.make<arith::MulIOp>(Value(y), constant(by)); };
  return fold(times(fold(times(fold(x, 16), 0x7feb352d), 15), 0x846ca68b), 16);
}

/// Drops elements: one is kept if the hash of its row's key, the site and its column is at least p
/// 2^32.
struct DropoutToLinalg : OpRewritePattern<DropoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DropoutOp op, PatternRewriter &rewriter) const override {
    if (!op.getKeys()) {
      rewriter.replaceOp(op, op.getX());
      return success();
    }
    const double p = op.getProbability().convertToDouble();
    const auto threshold = uint32_t(std::min(std::round(p * 0x1p32), 0x1p32 - 1));
    const auto site = uint32_t(op.getSite() * 0x9e3779b9);
    const unsigned columns = unsigned(tensorOf(op.getX()).getRank()) - 1;
    return replaceElementwise(
        rewriter, op, {op.getX(), {op.getKeys(), Indexing::Leading}}, [&](ArrayRef<Scalar> a) {
          const Scalar x = a[0], key = a[1];
          auto constant = [&](uint32_t value) {
            return key.make<arith::ConstantOp>(IntegerAttr::get(key.getType(), APInt(32, value)));
          };
          auto compare = [&](arith::CmpIPredicate is, Value left, uint32_t right) {
            return key.make<arith::CmpIOp>(is, left, Value(constant(right)));
          };
          Scalar column = key.make<arith::IndexCastOp>(key.getType(),
                                                       Value(key.make<linalg::IndexOp>(columns)));
          Scalar ofRow = mix(key.make<arith::XOrIOp>(Value(key), Value(constant(site))));
          Scalar mixed = mix(key.make<arith::XOrIOp>(Value(ofRow), Value(column)));
          Scalar hash = mix(key.make<arith::AddIOp>(Value(mixed), Value(key)));
          Value none = compare(arith::CmpIPredicate::eq, key, 0);
          Value above = compare(arith::CmpIPredicate::uge, hash, threshold);
          Value kept = key.make<arith::OrIOp>(none, above);
          Scalar factor =
              x.make<arith::SelectOp>(none, Value(x.constant(1)), Value(x.constant(1 / (1 - p))));
          return x.make<arith::SelectOp>(kept, Value(x * factor), Value(x.zero()));
        });
  }
};

struct ConvertBoaToLinalg : boa::impl::ConvertBoaToLinalgBase<ConvertBoaToLinalg> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet sums(context), rest(context);
    populateRowSumPatterns(sums);
    populateRowOpPatterns(rest);
    populateVocabularyPatterns(rest);
    populateFormulas(rest);
    rest.add<CastToLinalg, SplatToFill, SplitToSlices, ConcatToSlices, RotaryToLinalg,
             DropoutToLinalg>(context);
    applyUntilNoneMatches(getOperation(), std::move(sums));
    applyUntilNoneMatches(getOperation(), std::move(rest));
    getOperation()->walk([&](Operation *op) {
      if (isa<CostOpInterface>(op)) {
        op->emitOpError("has no lowering to a kernel");
        signalPassFailure();
      }
    });
  }
};

} // namespace

Scalar boa::extractElement(Scalar at, Value tensor, ValueRange indices) {
  Type wanted = tensorOf(tensor).getElementType();
  // From bf16 to f32, which is one instruction.
  if (auto cast = tensor.getDefiningOp<CastOp>())
    if (wanted.isF32() && tensorOf(cast.getX()).getElementType().isBF16())
      tensor = cast.getX();
  Scalar element = at.make<tensor::ExtractOp>(tensor, indices);
  return widen(element, wanted);
}
