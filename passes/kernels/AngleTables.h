//===- AngleTables.h - Tables of angles that kernels read -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// --kernel-bind-arguments turns kernel.angles into `tables` of a kernel.
// The runtime fills these tables (runtime/abi/tables.h).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_PASSES_KERNELS_ANGLETABLES_H
#define BOA_PASSES_KERNELS_ANGLETABLES_H

#include "dialect/Boa.h"
#include "runtime/abi/tables.h"

namespace boa {

/// The distinct tables of all kernels of a module, in the order of the descriptor.
inline llvm::SetVector<mlir::Attribute> getAllTables(mlir::ModuleOp module) {
  llvm::SetVector<mlir::Attribute> tables;
  for (auto kernel : module.getOps<KernelOp>())
    tables.insert_range(kernel.getTables());
  return tables;
}

inline mlir::RankedTensorType getTableType(mlir::Attribute table) {
  auto type = llvm::cast<mlir::DictionaryAttr>(table).getAs<mlir::TypeAttr>("type");
  return llvm::cast<mlir::RankedTensorType>(type.getValue());
}

inline AngleTable getTable(mlir::Attribute attr) {
  auto fields = llvm::cast<mlir::DictionaryAttr>(attr);
  AngleTable table{fields.getAs<mlir::StringAttr>("function").getValue().str(),
                   getTableType(attr).getDimSize(0),
                   {}};
  for (auto frequency : fields.getAs<mlir::ArrayAttr>("frequencies").getAsRange<mlir::FloatAttr>())
    table.frequencies.push_back(frequency.getValueAsDouble());
  return table;
}

} // namespace boa

#endif // BOA_PASSES_KERNELS_ANGLETABLES_H
