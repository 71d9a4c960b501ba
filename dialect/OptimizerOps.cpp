//===- OptimizerOps.cpp - The optimizer as a function of one element ------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"
#include "runtime/abi/optimizer.h"
#include "runtime/abi/program.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace boa {

OptimizerOp findOptimizer(ModuleOp module) {
  auto all = module.getOps<OptimizerOp>();
  return all.empty() ? OptimizerOp() : *all.begin();
}

SmallVector<std::pair<StringRef, Type>> OptimizerOp::getStateTypes() {
  SmallVector<std::pair<StringRef, Type>> types;
  for (NamedAttribute state : getStates())
    if (auto type = dyn_cast<TypeAttr>(state.getValue()))
      types.push_back({state.getName().getValue(), type.getValue()});
  return types;
}

unsigned OptimizerOp::getScalarCount() {
  return hasBody() ? getPrepare().front().getTerminator()->getNumOperands() : 0;
}

bool isCode(Type state) {
  auto integer = dyn_cast<IntegerType>(state);
  return integer && integer.getWidth() == 8 && !integer.isSignless();
}

RankedTensorType getStateEntryType(GroupOp group, Type state) {
  if (!isCode(state))
    return RankedTensorType::get({group.getPaddedElements()}, state);
  const int64_t elements = group.getChunkElements();
  const int64_t bytes = llvm::alignTo(elements + elements / BOA_STATE_BLOCK * 4, BOA_BLOCK_BYTES);
  return RankedTensorType::get({group.getChunks() * bytes},
                               IntegerType::get(state.getContext(), 8));
}

/// Whether every target has code for the op. Only a host has all of `math`:
/// --cuda-convert-device-to-nvvm refuses the rest.
static bool isArithmetic(Operation *op) {
  return isa<
      arith::ConstantOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::RemFOp,
      arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
      arith::CmpFOp, arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp,
      arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp, arith::SelectOp, arith::AddIOp,
      arith::SubIOp, arith::MulIOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
      arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp,
      arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp, arith::CmpIOp, arith::ExtSIOp,
      arith::ExtUIOp, arith::TruncIOp, math::AbsFOp, math::CeilOp, math::CopySignOp, math::CosOp,
      math::ExpOp, math::Exp2Op, math::ExpM1Op, math::FloorOp, math::FmaOp, math::LogOp,
      math::Log10Op, math::Log1pOp, math::Log2Op, math::PowFOp, math::RoundOp, math::RoundEvenOp,
      math::RsqrtOp, math::SinOp, math::SqrtOp, math::TanOp, math::TanhOp, math::TruncOp>(op);
}

static bool isScalar(Type type) {
  return type.isF32() || type.isF64() ||
         (type.isSignlessInteger() &&
          llvm::is_contained({1u, 8u, 16u, 32u, 64u}, type.getIntOrFloatBitWidth()));
}

/// Checks an op of the body: every target has code for it, and it ends no program.
static LogicalResult verifyArithmetic(Operation *op) {
  if (!isArithmetic(op))
    return op->emitOpError("is unknown in a boa.optimizer: expected arithmetic of scalars");
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (!isScalar(type))
      return op->emitOpError("expected f32, f64, or integers of 1, 8, 16, 32 or 64 bits in a "
                             "boa.optimizer but found ")
             << type;
  if (auto rounding = dyn_cast<arith::ArithRoundingModeInterface>(op);
      rounding && rounding.getRoundingModeAttr())
    return op->emitOpError("expected no rounding mode in a boa.optimizer");
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    if (APInt divisor; !matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
                       divisor.isZero() || divisor.isAllOnes())
      return op->emitOpError("may end the program: expected a constant divisor, neither 0 nor -1");
  return success();
}

/// Checks that the region has one block, which takes `inputs` and yields `results` values of f32:
/// any number if `results` is negative.
static LogicalResult verifyFunction(OptimizerOp op, Region &region, StringRef name,
                                    ArrayRef<Type> inputs, int64_t results) {
  if (!region.hasOneBlock())
    return op.emitOpError("expected one block in `") << name << "`";
  Block &block = region.front();
  if (block.getArgumentTypes() != inputs) {
    InFlightDiagnostic diag = op.emitOpError("expected `") << name << "` to take (";
    llvm::interleaveComma(inputs, diag);
    diag << ") but found (";
    llvm::interleaveComma(block.getArgumentTypes(), diag);
    return diag << ")";
  }
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op.emitOpError("expected `") << name << "` to end with boa.yield";
  if (results >= 0 && yield.getNumOperands() != results)
    return yield.emitOpError("expected the weight and ")
           << results - 1 << " states but found " << yield.getNumOperands() << " values";
  for (Operation &inner : block.without_terminator())
    if (failed(verifyArithmetic(&inner)))
      return failure();
  return success();
}

LogicalResult OptimizerOp::verify() {
  for (NamedAttribute value : getHyperparameters())
    if (auto number = dyn_cast<FloatAttr>(value.getValue());
        !number || !number.getType().isF64() || !number.getValue().isFinite())
      return emitOpError("expected a finite f64 as ") << value.getName();
  for (NamedAttribute state : getStates()) {
    auto type = dyn_cast<TypeAttr>(state.getValue());
    if (!type || !(type.getValue().isF32() || type.getValue().isBF16() || isCode(type.getValue())))
      return emitOpError("expected f32, bf16, si8 or ui8 as the type of ") << state.getName();
    // Its storage is @STATE.GROUP: other storages and groups are named alike.
    StringRef name = state.getName();
    const std::string prefix = (name + ".").str();
    if (symbolizeRole(name) || llvm::is_contained(kRoles, name) || name == "low" ||
        name.contains('.') ||
        llvm::is_contained(
            {StringRef(kGroupPrefix), StringRef(kFrozenPrefix), StringRef(kPartsPrefix)}, prefix))
      return emitOpError("expected a state of another name than ") << name;
  }
  if (getPrepare().empty() != getUpdate().empty())
    return emitOpError("expected `prepare` and `update`, or neither");
  if (!hasBody())
    return success();
  Type f32 = Float32Type::get(getContext()), f64 = Float64Type::get(getContext());
  if (failed(verifyFunction(*this, getPrepare(), "prepare",
                            SmallVector<Type>(1 + getHyperparameters().size(), f64), -1)))
    return failure();
  const size_t states = getStates().size();
  if (getScalarCount() > BOA_MOST_SCALARS)
    return emitOpError("expected at most ") << BOA_MOST_SCALARS << " scalars";
  return verifyFunction(*this, getUpdate(), "update",
                        SmallVector<Type>(4 + states + getScalarCount(), f32), int64_t(1 + states));
}

void OptimizerOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  SmallVector<StringRef> names;
  if (&region == &getPrepare()) {
    names.push_back("t");
    for (NamedAttribute value : getHyperparameters())
      names.push_back(value.getName());
  } else {
    names.append({"w", "g", "rate", "weight_decay"});
    for (NamedAttribute state : getStates())
      names.push_back(state.getName());
  }
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, name);
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/OptimizerOps.cpp.inc"
