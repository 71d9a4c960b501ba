//===- ConfigOp.cpp - boa.config ------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The settings against their table (runtime/abi/settings.def). The verifier refuses a key that the
// table does not have, and a value of another type, out of its range or not among its words.
// Readers (Config.cpp) rely on it.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "runtime/support/nearest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// boa.config @train { batch = 8 : i64, ... }
//===----------------------------------------------------------------------===//

static ParseResult parseSettings(OpAsmParser &parser, DictionaryAttr &settings) {
  NamedAttrList list;
  auto parseSetting = [&]() -> ParseResult {
    std::string name;
    Attribute value;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parser.parseAttribute(value))
      return failure();
    if (list.set(name, value))
      return parser.emitError(loc, "sets ") << name << " again";
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseSetting))
    return failure();
  settings = list.getDictionary(parser.getContext());
  return success();
}

static void printSettings(OpAsmPrinter &printer, ConfigOp, DictionaryAttr settings) {
  printer << '{';
  printer.increaseIndent();
  llvm::interleave(
      settings,
      [&](NamedAttribute setting) {
        printer.printNewline();
        printer.printKeywordOrString(setting.getName());
        printer << " = " << setting.getValue();
      },
      [&] { printer << ','; });
  printer.decreaseIndent();
  printer.printNewline();
  printer << '}';
}

namespace {

//===----------------------------------------------------------------------===//
// One value
//===----------------------------------------------------------------------===//

bool isReal(SettingKind kind) { return kind == SettingKind::Real; }
bool isInteger(SettingKind kind) {
  return kind == SettingKind::Count || kind == SettingKind::Bytes || kind == SettingKind::Speed ||
         kind == SettingKind::Operations || kind == SettingKind::Time || kind == SettingKind::Power;
}

bool isWordOf(Attribute value, StringRef list) {
  auto word = dyn_cast<StringAttr>(value);
  return word && ListHasWord(list, word.getValue());
}

} // namespace

// Numbers of layers, then shares. Each share leaves some to the tiers behind it.
bool isPlace(Attribute value) {
  const StringRef tiers = WordList(HomeTier());
  auto parts = dyn_cast<ArrayAttr>(value);
  if (!parts)
    return isWordOf(value, tiers);
  double left = 1;
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (i % 2 == 0) {
      if (!isWordOf(part, tiers))
        return false;
      continue;
    }
    if (auto layers = dyn_cast<IntegerAttr>(part)) {
      if (left < 1 || !layers.getType().isSignlessInteger(64) || layers.getInt() < 1)
        return false;
      continue;
    }
    auto share = dyn_cast<FloatAttr>(part);
    if (!share || !(share.getValueAsDouble() > 0 && share.getValueAsDouble() < left))
      return false;
    left -= share.getValueAsDouble();
  }
  return parts.size() % 2 == 1;
}

namespace {

/// Whether the value is a number in the range of its row, or its default.
bool isNumber(Attribute value, const SettingRow &row) {
  std::optional<double> number = numberOf(value, isReal(row.kind));
  return number && (row.Contains(*number) || *number == std::stod(row.value));
}

/// The words as a sentence has them: `"a", "b" or "c"`.
std::string describeWords(StringRef list) {
  std::string text;
  const std::vector<std::string> words = SplitWords(list);
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "\"" : i + 1 < words.size() ? ", \"" : " or \"") + words[i] + '"';
  return text;
}

std::string describeRange(const SettingRow &row) {
  auto print = [&](double number) -> std::string {
    if (isInteger(row.kind))
      return std::to_string(int64_t(number));
    return llvm::formatv("{0}", llvm::format("%g", number));
  };
  const bool bounded = row.most != std::numeric_limits<double>::infinity();
  const bool closed = bounded && !row.excludesLeast && !row.excludesMost;
  std::string range = llvm::formatv("{0} {1} {2}", isInteger(row.kind) ? "an i64" : "a number",
                                    closed              ? "between"
                                    : row.excludesLeast ? "above"
                                                        : "of at least",
                                    print(row.least));
  if (bounded)
    range += (closed             ? " and "
              : row.excludesMost ? " and below "
                                 : " and at most ") +
             print(row.most);
  if (std::stod(row.value) < row.least || (row.excludesLeast && std::stod(row.value) == row.least))
    range += ", or " + row.value;
  return range;
}

/// What the row expects, if the value is something else. Empty if it fits.
std::string findFault(Attribute value, const SettingRow &row) {
  const std::string fits;
  auto list = dyn_cast<ArrayAttr>(value);
  switch (row.kind) {
  case SettingKind::Flag:
    return isa<BoolAttr>(value) ? fits : "true or false";
  case SettingKind::Word:
  case SettingKind::Rate:
    return isWordOf(value, row.list) ? fits : describeWords(row.list);
  case SettingKind::Place:
    return isPlace(value) ? fits
                          : describeWords(row.list) +
                                ", or a list of them; behind each but the last a number of "
                                "layers, then shares above 0, together below 1";
  case SettingKind::Section:
    return isa<DictionaryAttr>(value) ? fits : "a dictionary";
  case SettingKind::List:
    return list && llvm::all_of(list, llvm::IsaPred<DictionaryAttr>) ? fits
                                                                     : "a list of dictionaries";
  case SettingKind::Text:
  case SettingKind::Path:
  case SettingKind::Data:
    return isa<StringAttr>(value) ? fits : "a string";
  default:
    return isNumber(value, row) ? fits : describeRange(row);
  }
}

//===----------------------------------------------------------------------===//
// All values
//===----------------------------------------------------------------------===//

/// Verifies the settings of a dictionary, all keys of which begin with `prefix`. `what` names it:
/// "@plan".
LogicalResult verify(Operation *op, const std::string &what, DictionaryAttr settings,
                     const std::vector<SettingRow> &rows, const std::string &prefix) {
  for (NamedAttribute given : settings) {
    std::string path = prefix + given.getName().str();
    auto hasKey = [&](const SettingRow &row) { return row.key == given.getName().strref(); };
    const auto row = llvm::find_if(rows, hasKey);
    if (row == rows.end()) {
      std::vector<std::string> keys;
      for (const SettingRow &other : rows)
        if (*other.key)
          keys.push_back(other.key);
      std::string near = NearestWord(given.getName().strref(), keys);
      auto diag = op->emitOpError(what) << " has no setting '" << path << "'";
      if (!near.empty())
        diag << ", did you mean '" << prefix << near << "'?";
      return diag;
    }
    Attribute value = given.getValue();
    if (std::string expected = findFault(value, *row); !expected.empty())
      return op->emitOpError("expected ")
             << path << " to be " << expected << " but found " << value;
    if (isReal(row->kind) && !IsFloat32(*numberOf(value, /*real=*/true)))
      return op->emitOpError("expected ")
             << path << " to fit f32: 0, or at least " << kLeastFloat32 << " but found " << value;
    if (row->kind == SettingKind::Section &&
        failed(verify(op, what, cast<DictionaryAttr>(value), row->rows(), path + ".")))
      return failure();
    if (row->kind == SettingKind::List)
      for (auto [i, section] : llvm::enumerate(cast<ArrayAttr>(value).getAsRange<DictionaryAttr>()))
        if (failed(verify(op, what, section, row->rows(), llvm::formatv("{0}[{1}].", path, i))))
          return failure();
  }
  return success();
}

} // namespace

LogicalResult ConfigOp::verify() {
  const std::pair<StringRef, const std::vector<SettingRow> *> blocks[] = {
      {kModelConfig, &RowsOf(static_cast<ModelSettings *>(nullptr))},
      {kTrainConfig, &RowsOf(static_cast<TrainSettings *>(nullptr))},
      {kPlanConfig, &RowsOf(static_cast<PlanSettings *>(nullptr))},
      {kMachineConfig, &RowsOf(static_cast<MachineSettings *>(nullptr))},
  };
  const auto *block = llvm::find_if(blocks, [&](auto &b) { return b.first == getSymName(); });
  if (block == std::end(blocks))
    return emitOpError("expected to be named @model, @train, @plan or @machine");
  if (failed(boa::verify(*this, ("@" + getSymName()).str(), getSettings(), *block->second, "")))
    return failure();
  if (getSymName() != kMachineConfig)
    return success();
  const auto machine = readSettings<MachineSettings>(getSettings());
  llvm::StringSet<> paths;
  for (const SsdSettings &ssd : machine.ssd)
    if (!paths.insert(ssd.path).second)
      return emitOpError("has the ssd \"") << ssd.path << "\" twice";
  return success();
}

DictionaryAttr getConfig(ModuleOp module, StringRef name) {
  auto config = module.lookupSymbol<ConfigOp>(name);
  return config ? config.getSettings() : DictionaryAttr();
}

void setConfig(ModuleOp module, StringRef name, DictionaryAttr settings) {
  if (auto config = module.lookupSymbol<ConfigOp>(name))
    return config.setSettingsAttr(settings);
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  ConfigOp::create(builder, module.getLoc(), name, settings);
}

//===----------------------------------------------------------------------===//
// What the plan says of one op
//===----------------------------------------------------------------------===//

LogicalResult verifyActivation(Operation *op, Attribute value) {
  auto settings = dyn_cast<DictionaryAttr>(value);
  if (!settings)
    return op->emitOpError("expected boa.activation to be a dictionary but found ") << value;
  const std::vector<SettingRow> &rows = RowsOf(static_cast<ActivationSettings *>(nullptr));
  if (failed(verify(op, kActivationAttr.str(), settings, rows, "")))
    return failure();
  const ActivationSettings activation = getActivation(op);
  if (!activation.save && !activation.place.parts.empty())
    return op->emitOpError("has a place for results that are not saved");
  return success();
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/ConfigOp.cpp.inc"
