//===- CodeBuilder.h - Arithmetic, memory and loops -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared by all lowerings that write code op by op: for the host, for a device, and for the program
// of runtime calls.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_CODEBUILDER_H
#define BOA_PASSES_KERNELS_CODEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace boa {

/// A builder at one place of the source, with arithmetic that folds. A number beside an operand is
/// a constant of the operand's type.
class CodeBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using Predicate = mlir::arith::CmpIPredicate;
  using Type = mlir::Type;
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  CodeBuilder(mlir::OpBuilder builder, mlir::Location loc) : ImplicitLocOpBuilder(loc, builder) {}
  /// The one result of an op, folded if it can be.
  template <typename OpTy, typename... Args> Value make(Args &&...args) {
    return OpBuilder::createOrFold<OpTy>(getLoc(), std::forward<Args>(args)...);
  }

  // Constants.
  Value integer(Type type, int64_t value) {
    return make<mlir::arith::ConstantOp>(getIntegerAttr(type, value));
  }
  Value integer(int64_t value, unsigned width = 32) {
    return integer(getIntegerType(width), value);
  }
  Value index(int64_t value) { return integer(getIndexType(), value); }
  /// A number of f32.
  Value number(double value) {
    return make<mlir::arith::ConstantOp>(getF32FloatAttr(static_cast<float>(value)));
  }

  // Indices, integers and conditions.
  Value add(Value a, Value b) { return make<mlir::arith::AddIOp>(a, b); }
  Value add(Value a, int64_t b) { return add(a, like(a, b)); }
  Value sub(Value a, Value b) { return make<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return make<mlir::arith::MulIOp>(a, b); }
  Value mul(Value a, int64_t b) { return mul(a, like(a, b)); }
  Value div(Value a, int64_t b) { return make<mlir::arith::DivUIOp>(a, like(a, b)); }
  Value rem(Value a, int64_t b) { return make<mlir::arith::RemUIOp>(a, like(a, b)); }
  Value either(Value a, Value b) { return make<mlir::arith::OrIOp>(a, b); }
  Value both(Value a, Value b) { return make<mlir::arith::AndIOp>(a, b); }
  Value both(Value a, int64_t b) { return both(a, like(a, b)); }
  Value exclusive(Value a, Value b) { return make<mlir::arith::XOrIOp>(a, b); }
  Value shiftLeft(Value a, int64_t by) { return make<mlir::arith::ShLIOp>(a, like(a, by)); }
  Value shiftRight(Value a, int64_t by) { return make<mlir::arith::ShRUIOp>(a, like(a, by)); }
  Value least(Value a, int64_t b) { return make<mlir::arith::MinUIOp>(a, like(a, b)); }
  Value compare(Predicate predicate, Value a, Value b) {
    return make<mlir::arith::CmpIOp>(predicate, a, b);
  }
  Value isLess(Value a, int64_t b) { return compare(Predicate::ult, a, like(a, b)); }
  Value isZero(Value a) { return compare(Predicate::eq, a, like(a, 0)); }
  Value select(Value condition, Value yes, Value no) {
    return make<mlir::arith::SelectOp>(condition, yes, no);
  }
  Value toIndex(Value value) { return make<mlir::arith::IndexCastOp>(getIndexType(), value); }
  Value toInteger(Value index, unsigned width = 32) {
    return make<mlir::arith::IndexCastOp>(getIntegerType(width), index);
  }
  /// The index in a space of these extents that `linear` stands for.
  Values delinearize(Value linear, llvm::ArrayRef<int64_t> extents) {
    Values result(extents.size());
    for (unsigned i = extents.size(); i-- > 1; linear = div(linear, extents[i]))
      result[i] = rem(linear, extents[i]);
    if (!extents.empty())
      result[0] = linear;
    return result;
  }

  // Floats.
  Value addf(Value a, Value b) { return make<mlir::arith::AddFOp>(a, b); }
  Value subf(Value a, Value b) { return make<mlir::arith::SubFOp>(a, b); }
  Value mulf(Value a, Value b) { return make<mlir::arith::MulFOp>(a, b); }
  Value divf(Value a, Value b) { return make<mlir::arith::DivFOp>(a, b); }
  /// Computes a * b + c, rounded once.
  Value fma(Value a, Value b, Value c) { return make<mlir::math::FmaOp>(a, b, c); }
  Value bitsOf(Value f32) { return make<mlir::arith::BitcastOp>(getI32Type(), f32); }
  Value floatOf(Value bits) { return make<mlir::arith::BitcastOp>(getF32Type(), bits); }

  // Memory behind a pointer: element `index` of an array.
  Type pointer() { return mlir::LLVM::LLVMPointerType::get(context); }
  Value at(Value base, Type element, mlir::LLVM::GEPArg index) {
    return mlir::LLVM::GEPOp::create(*this, pointer(), element, base,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>(index));
  }
  Value loadAt(Value base, Type element, mlir::LLVM::GEPArg index) {
    return mlir::LLVM::LoadOp::create(*this, element, at(base, element, index));
  }
  void storeAt(Value value, Value base, mlir::LLVM::GEPArg index) {
    mlir::LLVM::StoreOp::create(*this, value, at(base, value.getType(), index));
  }
  /// Makes room for pointers side by side, on the stack.
  Value makeList(int64_t count) {
    Value size = mlir::LLVM::ConstantOp::create(*this, getI64Type(), getI64IntegerAttr(count));
    return mlir::LLVM::AllocaOp::create(*this, pointer(), pointer(), size);
  }

  // Control flow.
  /// Computes the block on these values of its arguments, and in iteration `ivs` if it is of a
  /// linalg op. A value that it does not use may be null. Returns what it yields. Ops keep their
  /// locations: what refuses one later names the user's line.
  Values compute(mlir::Block &block, mlir::ValueRange arguments, mlir::ValueRange ivs = {}) {
    mlir::IRMapping mapping;
    mapping.map(block.getArguments(), arguments);
    for (mlir::Operation &op : block.without_terminator())
      if (auto index = llvm::dyn_cast<mlir::linalg::IndexOp>(op))
        mapping.map(index.getResult(), ivs[index.getDim()]);
      else
        clone(op, mapping);
    return llvm::map_to_vector(block.getTerminator()->getOperands(),
                               [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  /// Runs `then` if `condition` holds, or always if it is null.
  void when(Value condition, llvm::function_ref<void()> then) {
    if (!condition)
      return then();
    auto choice = mlir::scf::IfOp::create(*this, condition);
    InsertionGuard guard(*this);
    setInsertionPointToStart(choice.thenBlock());
    then();
  }
  /// Runs `body` for each `step`th number in [from, to). It maps the carried values to those of the
  /// next iteration. The last ones are returned.
  Values loop(Value from, Value to, int64_t step, Values carried,
              llvm::function_ref<void(Value, Values &)> body) {
    auto loop = mlir::scf::ForOp::create(*this, from, to, like(from, step), carried);
    InsertionGuard guard(*this);
    setInsertionPointToStart(loop.getBody());
    Values inside(loop.getRegionIterArgs());
    body(loop.getInductionVar(), inside);
    if (!inside.empty())
      mlir::scf::YieldOp::create(*this, inside);
    return Values(loop.getResults());
  }

  // Constants of the program.
  void addText(llvm::StringRef name, const llvm::Twine &text,
               mlir::LLVM::Linkage linkage = mlir::LLVM::Linkage::Internal) {
    const std::string value = text.str();
    auto type = mlir::LLVM::LLVMArrayType::get(getI8Type(), value.size());
    mlir::LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, linkage, name,
                                 getStringAttr(value));
  }
  /// Adds an array or a structure. `make` gives its members, with the builder in the initialiser.
  void addConstant(llvm::StringRef name, Type type, mlir::LLVM::Linkage linkage,
                   llvm::function_ref<Values()> make) {
    auto global = mlir::LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, linkage, name,
                                               mlir::Attribute());
    InsertionGuard guard(*this);
    createBlock(&global.getInitializerRegion());
    mlir::LLVM::ReturnOp::create(*this, aggregate(type, make()));
  }
  /// Adds an array of the addresses of symbols.
  void addAddresses(llvm::StringRef name, mlir::LLVM::Linkage linkage,
                    llvm::ArrayRef<llvm::StringRef> symbols) {
    addConstant(name, mlir::LLVM::LLVMArrayType::get(pointer(), symbols.size()), linkage, [&] {
      return llvm::map_to_vector(symbols, [&](llvm::StringRef symbol) { return address(symbol); });
    });
  }
  Value address(llvm::StringRef symbol) {
    return mlir::LLVM::AddressOfOp::create(*this, pointer(), symbol);
  }
  /// Builds an array or a structure.
  Value aggregate(Type type, mlir::ValueRange values) {
    Value result = mlir::LLVM::UndefOp::create(*this, type);
    for (auto [i, value] : llvm::enumerate(values))
      result = mlir::LLVM::InsertValueOp::create(*this, result, value, static_cast<int64_t>(i));
    return result;
  }

private:
  Value like(Value of, int64_t value) { return integer(of.getType(), value); }
};

} // namespace boa

#endif // BOA_PASSES_KERNELS_CODEBUILDER_H
