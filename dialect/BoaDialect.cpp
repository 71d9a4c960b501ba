//===- BoaDialect.cpp - The dialect, its types and enums ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "dialect/BoaDialect.cpp.inc"
#include "dialect/BoaEnums.cpp.inc"
#include "dialect/BoaInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/BoaAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/BoaTypes.cpp.inc"

namespace boa {

/// Whether the type has at most kMostElements. The entry of a storage has its parameters one behind
/// another, in one dimension that no BLAS sees.
static bool hasElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         llvm::all_of(tensor.getShape(), [](int64_t extent) { return extent >= 1; }) &&
         CheckedProduct(tensor.getShape()).AtMost(kMostElements);
}

bool hasSize(Type type) {
  return hasElements(type) && llvm::all_of(cast<RankedTensorType>(type).getShape(),
                                           [](int64_t extent) { return extent <= kMostExtent; });
}

bool hasByteSize(Type type) {
  if (!hasElements(type))
    return false;
  Type element = cast<RankedTensorType>(type).getElementType();
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() % 8 == 0 &&
         element.getIntOrFloatBitWidth() <= 64;
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, Type contents,
                                 Space) {
  if (hasByteSize(contents))
    return success();
  return emitError() << "expected a buffer of a tensor of static shape, of 1 to 2^40 elements of "
                        "whole bytes, but found "
                     << contents;
}

namespace {
/// An attribute of another type than an integer is no index: boa.step refuses it.
struct ConstantIndex : IndexOpInterface::ExternalModel<ConstantIndex, arith::ConstantOp> {
  int64_t compute(Operation *op, const IndexValues &) const {
    return cast<IntegerAttr>(cast<arith::ConstantOp>(op).getValue())
        .getValue()
        .sextOrTrunc(64)
        .getSExtValue();
  }
};
struct BothConditions : IndexOpInterface::ExternalModel<BothConditions, arith::AndIOp> {
  int64_t compute(Operation *op, const IndexValues &values) const {
    return values.get(op->getOperand(0)) & values.get(op->getOperand(1));
  }
};
} // namespace

void BoaDialect::initialize() {
  arith::ConstantOp::attachInterface<ConstantIndex>(*getContext());
  arith::AndIOp::attachInterface<BothConditions>(*getContext());
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/BoaAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/BoaTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/BoaOps.cpp.inc"
      >();
}

} // namespace boa
