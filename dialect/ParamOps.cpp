//===- ParamOps.cpp - Parameters and their groups -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include <cmath>

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.group
//===----------------------------------------------------------------------===//

/// The alignment of parameters: 64 bytes also when they are stored as bf16.
static constexpr int64_t kParamAlignment = 32; // elements
static constexpr int64_t kChunks = 16;
static constexpr int64_t kMaxChunkElements = 2 << 20;
static constexpr int64_t kMinChunkElements = 2 * kChunkUnit;

int64_t GroupOp::getOffset(StringRef name) {
  int64_t offset = 0;
  for (auto param : getBody().getOps<ParamOp>()) {
    if (param.getSymName() == name)
      return offset;
    offset += llvm::alignTo(param.getType().getNumElements(), kParamAlignment);
  }
  return -1;
}

int64_t GroupOp::getElements() {
  int64_t elements = 0;
  for (auto param : getBody().getOps<ParamOp>())
    elements += llvm::alignTo(param.getType().getNumElements(), kParamAlignment);
  return elements;
}

int64_t GroupOp::getChunkElements() {
  int64_t elements = std::max<int64_t>(getElements(), 1);
  int64_t count = kChunks;
  if (elements > kChunks * kMaxChunkElements)
    count = llvm::alignTo(llvm::divideCeil(elements, kMaxChunkElements), 4);
  if (auto most = (*this)->getParentOp()->getAttrOfType<IntegerAttr>(kMostChunksAttr))
    count = std::min(count, most.getInt());
  int64_t size = llvm::alignTo(llvm::divideCeil(elements, count), kChunkUnit);
  return std::max<int64_t>(
      size, std::min<int64_t>(kMinChunkElements, llvm::alignTo(elements, kChunkUnit)));
}

// After the size, which is rounded up: else the last chunks could hold nothing.
int64_t GroupOp::getChunks() {
  return std::max<int64_t>(llvm::divideCeil(getElements(), getChunkElements()), 1);
}

LogicalResult GroupOp::verify() {
  if (getFrozen() == getSymName().starts_with(kFrozenPrefix))
    return success();
  return emitOpError("expected a frozen group, and no other, to be named @")
         << kFrozenPrefix << "NAME but found @" << getSymName() << (getFrozen() ? " frozen" : "");
}

/// The most elements of a group, as in the language.
static constexpr int64_t kMostGroupElements = int64_t(1) << 50;

LogicalResult GroupOp::verifyRegions() {
  Checked elements = 0;
  for (Operation &op : getBody().front()) {
    auto param = dyn_cast<ParamOp>(op);
    if (!param)
      return op.emitOpError("is unknown in a boa.group: expected boa.param");
    elements += Checked(param.getType().getNumElements()).AlignedTo(kParamAlignment);
  }
  if ((elements * int64_t(getRepeat())).AtMost(kMostGroupElements))
    return success();
  return emitOpError("expected at most 2^50 elements in all entries together");
}

SmallVector<ParamOp> getParamsOf(ModuleOp module, StringRef user) {
  SmallVector<ParamOp> params;
  for (auto group : module.getOps<GroupOp>())
    if (getUserName(group.getSymName()) == user)
      llvm::append_range(params, group.getBody().getOps<ParamOp>());
  llvm::stable_sort(params, [](ParamOp a, ParamOp b) { return a.getPlace() < b.getPlace(); });
  return params;
}

int64_t getDelayedChunks(int64_t chunks, double delay) {
  return std::clamp<int64_t>(std::llround(delay * double(chunks)), 0, chunks);
}

//===----------------------------------------------------------------------===//
// boa.param @w : tensor<8x8xf32> = "normal" 2.0e-02
//===----------------------------------------------------------------------===//

static ParseResult parseInit(OpAsmParser &parser, InitAttr &init) {
  std::string word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseString(&word))
    return failure();
  std::optional<Init> known = symbolizeInit(word);
  if (!known)
    return parser.emitError(loc,
                            "expected \"zeros\", \"ones\", \"normal\" or \"uniform\" but found \"")
           << word << '"';
  init = InitAttr::get(parser.getContext(), *known);
  return success();
}

static void printInit(OpAsmPrinter &printer, ParamOp, InitAttr init) {
  printer << '"' << stringifyInit(init.getValue()) << '"';
}

void ParamOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                    RankedTensorType type, Init init, double scale) {
  build(builder, state, builder.getStringAttr(name), TypeAttr::get(type),
        InitAttr::get(builder.getContext(), init), builder.getF64FloatAttr(scale),
        /*number=*/{}, /*lr_scale=*/{}, /*weight_decay=*/{}, /*external=*/{}, /*adapter=*/{},
        /*split=*/{});
}

int64_t ParamOp::getPlace() {
  if (std::optional<uint64_t> number = getNumber())
    return int64_t(*number);
  auto params = cast<GroupOp>((*this)->getParentOp()).getBody().getOps<ParamOp>();
  return std::distance(params.begin(), llvm::find(params, *this));
}

double ParamOp::getRateFactor() { return getLrScale() ? getLrScale()->convertToDouble() : 1; }

double ParamOp::getDecay(double ofMatrices) {
  if (getWeightDecay())
    return getWeightDecay()->convertToDouble();
  return getType().getRank() >= 2 ? ofMatrices : 0;
}

/// The largest factor of a rate, as in the language (settings.def).
static constexpr double kMostRateFactor = 1000;

LogicalResult ParamOp::verify() {
  if (!hasSize(getType()))
    return emitOpError("expected between 1 and 2^40 elements but found ") << getType();
  bool scaled = getInit() == Init::normal || getInit() == Init::uniform;
  double scale = getScale().convertToDouble();
  if (!scaled && scale != 0)
    return emitOpError("expected no scale of \"") << stringifyInit(getInit()) << '"';
  if (!(scale >= 0 && scale <= 1e6))
    return emitOpError("expected a scale between 0 and 1e6 but found ") << getScaleAttr();
  const bool parts = isOfParts(cast<GroupOp>((*this)->getParentOp()).getSymName());
  if (parts != bool(getSplitAttr()))
    return emitOpError("expected split in a group of parts, @")
           << kPartsPrefix << "NAME, and only there";
  if (parts && (getSplitAttr().getInt() < 0 || getSplitAttr().getInt() >= getType().getRank()))
    return emitOpError("expected to be split along one of its dimensions but found ")
           << getSplitAttr();
  if (getNumberAttr() && getNumberAttr().getInt() < 0)
    return emitOpError("expected a number of at least 0 but found ") << getNumberAttr();
  if (double factor = getRateFactor(); !(factor >= 0 && factor <= kMostRateFactor))
    return emitOpError("expected lr_scale between 0 and 1000 but found ") << getLrScaleAttr();
  if (double decay = getDecay(0); !(decay >= 0 && decay <= 1))
    return emitOpError("expected weight_decay between 0 and 1 but found ") << getWeightDecayAttr();
  const std::pair<StringRef, FloatAttr> numbers[] = {{"scale", getScaleAttr()},
                                                     {"lr_scale", getLrScaleAttr()},
                                                     {"weight_decay", getWeightDecayAttr()}};
  for (auto [name, number] : numbers)
    if (number && !IsFloat32(number.getValueAsDouble()))
      return emitOpError("expected ")
             << name << " to fit f32: 0, or at least " << kLeastFloat32 << " but found " << number;
  if (AdapterAttr adapter = getAdapterAttr())
    if (double alpha = adapter.getAlpha().getValueAsDouble(); !(alpha > 0 && IsFloat32(alpha)))
      return emitOpError(
                 "expected the alpha of its adapter to be above 0 and to fit f32 but found ")
             << adapter.getAlpha();
  return success();
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/ParamOps.cpp.inc"
