//===- KernelOp.cpp - Kernels ---------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code is made for what a kernel says of its buffers, and the memory of a program is planned for
// what it needs. So its places lie in its buffers, and the runtime knows the formats of its costs.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"

#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// The clauses behind the signature. A clause that is its default is left out.
static constexpr StringLiteral kClauses[] = {"reads",     "updates", "writes", "costs",
                                             "workspace", "scratch", "tables", "prepared"};

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  const OperationName op = result.name;
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> results;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  if (parser.parseSymbolName(name, getSymNameAttrName(op), result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, results, resultAttrs))
    return failure();
  auto types = llvm::map_to_vector(arguments, [](auto &argument) { return argument.type; });
  result.addAttribute(getFunctionTypeAttrName(op),
                      TypeAttr::get(builder.getFunctionType(types, results)));
  call_interface_impl::addArgAndResultAttrs(builder, result, arguments, resultAttrs,
                                            getArgAttrsAttrName(op), getResAttrsAttrName(op));
  for (StringRef clause : kClauses) {
    if (failed(parser.parseOptionalKeyword(clause)))
      continue;
    Attribute value;
    if (parser.parseAttribute(value, builder.getI64Type()))
      return failure();
    result.addAttribute(clause, value);
  }
  return failure(parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(),
                                                  /*isVariadic=*/false, getResultTypes());
  for (StringRef clause : kClauses) {
    Attribute value = (*this)->getAttr(clause);
    const bool isDefault =
        !value || llvm::TypeSwitch<Attribute, bool>(value)
                      .Case([](ArrayAttr list) { return list.empty(); })
                      .Case([](DictionaryAttr map) { return map.empty(); })
                      .Case([](IntegerAttr bytes) { return bytes.getInt() == 0; })
                      .Default(false);
    if (isDefault)
      continue;
    printer << ' ' << clause << ' ';
    printer.printAttributeWithoutType(value);
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getDiscardableAttrDictionary().getValue());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

SmallVector<Type> KernelOp::getBuffers() {
  SmallVector<Type> types;
  for (ArrayAttr some : {getReads(), getUpdates(), getWrites()})
    llvm::append_range(types, some.getAsValueRange<TypeAttr>());
  if (PreparedAttr prepared = getPreparedAttr())
    types.push_back(prepared.getType());
  return types;
}

/// Checks that a value lies in one of the buffers of which the first has this number. Past the end
/// of it, the kernel would write over another.
static LogicalResult verifyPlace(KernelOp kernel, DictionaryAttr attrs, Type type, StringRef does,
                                 int64_t first, ArrayAttr buffers) {
  const auto buffer = attrs ? attrs.getAs<IntegerAttr>(kBufferAttr) : IntegerAttr();
  const auto offset = attrs ? attrs.getAs<IntegerAttr>(kOffsetAttr) : IntegerAttr();
  if (!buffer && !offset)
    return success();
  if (!buffer || !offset)
    return kernel.emitOpError("expected ") << kBufferAttr << " and " << kOffsetAttr << " together";
  const int64_t number = buffer.getInt() - first;
  if (number < 0 || number >= int64_t(buffers.size()))
    return kernel.emitOpError("expected one of the ")
           << buffers.size() << " buffers that it " << does << ", from " << first << ", but found "
           << kBufferAttr << " = " << buffer.getInt();
  auto bytesOf = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getNumElements() * (tensor.getElementTypeBitWidth() / 8);
  };
  Type held = cast<TypeAttr>(buffers[size_t(number)]).getValue();
  if (hasByteSize(type) && (Checked(offset.getInt()) + bytesOf(type)).AtMost(bytesOf(held)))
    return success();
  return kernel.emitOpError("expected ")
         << type << " within buffer " << buffer.getInt() << ", which holds " << held
         << ", but found " << kOffsetAttr << " = " << offset.getInt();
}

static LogicalResult verifyPlaces(KernelOp kernel) {
  for (Type type : kernel.getBuffers())
    if (!hasByteSize(type))
      return kernel.emitOpError("expected buffers of tensors of static shape but found ") << type;
  const int64_t reads = kernel.getReads().size(), written = reads + kernel.getUpdates().size();
  llvm::SmallDenseSet<int64_t> sums; // results
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    DictionaryAttr attrs = kernel.getArgAttrDict(unsigned(i));
    const auto result = attrs ? attrs.getAs<IntegerAttr>(kResultAttr) : IntegerAttr();
    if (failed(verifyPlace(kernel, attrs, type, result ? "updates" : "reads", result ? reads : 0,
                           result ? kernel.getUpdates() : kernel.getReads())))
      return failure();
    if (!result)
      continue;
    if (result.getInt() >= int64_t(kernel.getNumResults()))
      return kernel.emitOpError("expected ")
             << kResultAttr << " to be one of " << kernel.getNumResults() << " results but found "
             << result.getInt();
    sums.insert(result.getInt());
    DictionaryAttr other = kernel.getResultAttrDict(unsigned(result.getInt()));
    if (!other || attrs.get(kBufferAttr) != other.get(kBufferAttr) ||
        attrs.get(kOffsetAttr) != other.get(kOffsetAttr) ||
        type != kernel.getResultTypes()[size_t(result.getInt())])
      return kernel.emitOpError("expected argument ")
             << i << " to lie where result " << result.getInt() << " does";
  }
  for (auto [i, type] : llvm::enumerate(kernel.getResultTypes()))
    if (!sums.contains(int64_t(i)) &&
        failed(verifyPlace(kernel, kernel.getResultAttrDict(unsigned(i)), type, "writes", written,
                           kernel.getWrites())))
      return failure();
  return success();
}

/// Whether it describes a table: {frequencies = [1.0], function = "sine", type = tensor<4x1xf32>}
static bool isTable(Attribute value) {
  auto table = dyn_cast<DictionaryAttr>(value);
  if (!table || table.size() != 3)
    return false;
  auto function = table.getAs<StringAttr>("function");
  auto frequencies = table.getAs<ArrayAttr>("frequencies");
  auto attr = table.getAs<TypeAttr>("type");
  auto type = attr ? dyn_cast<RankedTensorType>(attr.getValue()) : RankedTensorType();
  return function && (function.getValue() == "sine" || function.getValue() == "cosine") &&
         frequencies && llvm::all_of(frequencies, llvm::IsaPred<FloatAttr>) && type &&
         hasByteSize(type) && type.getRank() == 2 && isa<FloatType>(type.getElementType()) &&
         type.getDimSize(1) == int64_t(frequencies.size());
}

/// Checks that a kernel makes the prepared form of what this one reads.
LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  PreparedAttr prepared = getPreparedAttr();
  if (!prepared)
    return success();
  SmallVector<Attribute> reads;
  for (int64_t read : prepared.getReads()) {
    if (read < 0 || read >= int64_t(getReads().size()))
      return emitOpError("expected to prepare some of the ")
             << getReads().size() << " buffers that it reads but found " << read;
    reads.push_back(getReads()[size_t(read)]);
  }
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, prepared.getKernel());
  if (kernel && llvm::equal(kernel.getReads(), reads) && kernel.getUpdates().empty() &&
      llvm::equal(kernel.getWrites(), ArrayRef<Attribute>(TypeAttr::get(prepared.getType()))))
    return success();
  return emitOpError("expected ") << prepared.getKernel() << " to be a kernel that makes "
                                  << prepared.getType() << " of what it prepares";
}

LogicalResult KernelOp::verify() {
  if (failed(verifyPlaces(*this)))
    return failure();
  if (getScratch() > getWorkspace())
    return emitOpError("expected scratch within the workspace of ")
           << getWorkspace() << " bytes but found " << getScratch();
  for (Attribute table : getTables())
    if (!isTable(table))
      return emitOpError("expected tables of angles but found ") << table;
  for (NamedAttribute cost : getCosts())
    if (!isa<CostAttr>(cost.getValue()) || !ParseWord<NumberFormat>(cost.getName().getValue()))
      return emitOpError("expected costs by format, {f32 = #boa.cost<...>}, but found ")
             << cost.getName().getValue() << " = " << cost.getValue();
  return success();
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t flops,
                               int64_t bytes, int64_t products, int64_t attention,
                               int64_t elementwise) {
  if (std::min({flops, bytes, products, attention, elementwise}) >= 0)
    return success();
  return emitError() << "expected costs of at least 0";
}

LogicalResult ReturnOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  if (getOperandTypes() == TypeRange(kernel.getResultTypes()))
    return success();
  return emitOpError("expected the types of the results of @") << kernel.getSymName();
}

//===----------------------------------------------------------------------===//
// From a function
//===----------------------------------------------------------------------===//

KernelOp KernelOp::replace(FunctionOpInterface func, TypeRange reads, TypeRange updates,
                           TypeRange writes) {
  OpBuilder builder(func);
  auto kernel =
      KernelOp::create(builder, func.getLoc(), SymbolTable::getSymbolName(func).getValue(),
                       cast<FunctionType>(func.getFunctionType()), func.getArgAttrsAttr(),
                       func.getResAttrsAttr(), PreparedAttr(), builder.getTypeArrayAttr(reads),
                       builder.getTypeArrayAttr(updates), builder.getTypeArrayAttr(writes));
  kernel.getBody().takeBody(func.getFunctionBody());
  func->erase();
  Operation *terminator = kernel.getBody().front().getTerminator();
  builder.setInsertionPoint(terminator);
  ReturnOp::create(builder, terminator->getLoc(), terminator->getOperands());
  terminator->erase();
  return kernel;
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/KernelOp.cpp.inc"
