//===- MemoryNeed.cpp -----------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/storage/MemoryNeed.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace boa {

static constexpr llvm::StringLiteral kText = "memory_need", kBytes = "bytes", kSpace = "space";

void MemoryNeed::attachTo(Diagnostic &diagnostic, MLIRContext *context) const {
  Builder builder(context);
  SmallVector<NamedAttribute> fields = {
      builder.getNamedAttr(kText, builder.getStringAttr(text)),
      builder.getNamedAttr(kBytes, builder.getI64IntegerAttr(bytes))};
  if (space)
    fields.push_back(builder.getNamedAttr(kSpace, builder.getStringAttr(stringifySpace(*space))));
  diagnostic.getMetadata().emplace_back(builder.getDictionaryAttr(fields));
}

std::optional<MemoryNeed> MemoryNeed::of(Diagnostic &diagnostic) {
  for (const DiagnosticArgument &argument : diagnostic.getMetadata()) {
    if (argument.getKind() != DiagnosticArgument::DiagnosticArgumentKind::Attribute)
      continue;
    auto fields = llvm::dyn_cast<DictionaryAttr>(argument.getAsAttribute());
    if (!fields || !fields.contains(kText))
      continue;
    MemoryNeed need;
    need.text = fields.getAs<StringAttr>(kText).str();
    need.bytes = fields.getAs<IntegerAttr>(kBytes).getInt();
    if (auto space = fields.getAs<StringAttr>(kSpace))
      need.space = symbolizeSpace(space.getValue());
    return need;
  }
  return std::nullopt;
}

} // namespace boa
