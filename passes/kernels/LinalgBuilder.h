//===- LinalgBuilder.h - Arithmetic and row-wise linalg ops -----*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalar arithmetic that reads like arithmetic, and the four shapes of
// linalg.generic that compute ops become: elementwise, reduction of a row, sum
// over rows, and a sum of everything.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_LINALGBUILDER_H
#define BOA_PASSES_KERNELS_LINALGBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace boa {

inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// A scalar in a body under construction. Its arithmetic is strict: LLVM may not contract a product
/// and a sum, since which ones stand together depends on fusion. So a value that is computed again
/// has the bits of the one that was saved.
class Scalar {
public:
  Scalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value)
      : builder(&builder), loc(loc), value(value) {}

  operator mlir::Value() const { return value; }
  mlir::Type getType() const { return value.getType(); }

  Scalar wrap(mlir::Value v) const { return Scalar(*builder, loc, v); }
  /// The result of a new op.
  template <typename Op, typename... Args> Scalar make(Args &&...args) const {
    return wrap(Op::create(*builder, loc, std::forward<Args>(args)...));
  }
  Scalar zero() const { return make<mlir::arith::ConstantOp>(builder->getZeroAttr(getType())); }
  Scalar toIndex(mlir::Value integer) const {
    return make<mlir::arith::IndexCastOp>(builder->getIndexType(), integer);
  }
  Scalar constant(double c) const {
    return make<mlir::arith::ConstantOp>(builder->getFloatAttr(getType(), c));
  }

  friend Scalar operator+(Scalar a, Scalar b) { return a.binary<mlir::arith::AddFOp>(b); }
  friend Scalar operator-(Scalar a, Scalar b) { return a.binary<mlir::arith::SubFOp>(b); }
  friend Scalar operator*(Scalar a, Scalar b) { return a.binary<mlir::arith::MulFOp>(b); }
  friend Scalar operator/(Scalar a, Scalar b) { return a.binary<mlir::arith::DivFOp>(b); }
  friend Scalar operator+(Scalar a, double b) { return a + a.constant(b); }
  friend Scalar operator*(Scalar a, double b) { return a * a.constant(b); }
  friend Scalar operator/(Scalar a, double b) { return a / a.constant(b); }
  friend Scalar operator-(double a, Scalar b) { return b.constant(a) - b; }
  friend Scalar operator/(double a, Scalar b) { return b.constant(a) / b; }

  Scalar exp() const { return unary<mlir::math::ExpOp>(); }
  Scalar log() const { return unary<mlir::math::LogOp>(); }
  Scalar sqrt() const { return unary<mlir::math::SqrtOp>(); }

private:
  template <typename Op> Scalar binary(Scalar b) const { return make<Op>(value, b.value); }
  template <typename Op> Scalar unary() const { return make<Op>(value); }

  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value value;
};

/// The way in which an op over [leading..., last] indexes an operand.
enum class Indexing {
  Full,     // [leading..., last]
  Leading,  // one value for each row
  Trailing, // lacks leading dimensions: the same for each of them
};
struct Input {
  mlir::Value value;
  Indexing indexing = Indexing::Full;
  Input(mlir::Value value, Indexing indexing = Indexing::Full) : value(value), indexing(indexing) {}
};

/// A function for the body of an op: from one scalar for each input to the value computed.
using Body = llvm::function_ref<Scalar(llvm::ArrayRef<Scalar>)>;

enum class Reduction { Sum, Max };

/// Builds linalg ops on tensors at one location.
class LinalgBuilder {
public:
  LinalgBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value empty(mlir::RankedTensorType type);
  mlir::Value filled(mlir::RankedTensorType type, double value);

  /// Builds type[...] = body(inputs).
  mlir::Value elementwise(mlir::RankedTensorType type, llvm::ArrayRef<Input> inputs, Body body);

  /// The reduction of body(inputs) over the last dimension of `space`:
  /// one value for each row.
  mlir::Value reduceRows(mlir::RankedTensorType space, Reduction kind, llvm::ArrayRef<Input> inputs,
                         Body body);

  /// init + the sum of body(inputs) over the leading dimensions of `space` that
  /// the init lacks.
  mlir::Value sumLeading(mlir::RankedTensorType space, mlir::Value init,
                         llvm::ArrayRef<Input> inputs, Body body);

  /// The type of one value for each row of a tensor of this type.
  static mlir::RankedTensorType getRowsType(mlir::RankedTensorType type) {
    return mlir::RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  }

private:
  mlir::Value generic(mlir::Value init, mlir::AffineMap initMap, unsigned rank,
                      llvm::ArrayRef<Input> inputs,
                      llvm::ArrayRef<mlir::utils::IteratorType> iterators, bool reduces,
                      Reduction kind, Body body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace boa

#endif // BOA_PASSES_KERNELS_LINALGBUILDER_H
