//===- BoaDialect.cpp - The dialect, its types and enums ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

using namespace mlir;

#include "dialect/BoaDialect.cpp.inc"
#include "dialect/BoaEnums.cpp.inc"
#include "dialect/BoaInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/BoaAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/BoaTypes.cpp.inc"

namespace boa {

void BoaDialect::initialize() {
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
