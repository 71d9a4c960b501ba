//===- BoaConfig.cpp - The configuration, verified ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// boa.config against the table of settings (runtime/abi/settings.def), and its reading and
// writing as structs. The verifier refuses a key that the table does not have, and a value of
// another type, out of its range or not among its words. Readers rely on it.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "runtime/support/nearest.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace boa {

namespace {

//===----------------------------------------------------------------------===//
// One value
//===----------------------------------------------------------------------===//

bool isReal(SettingKind kind) { return kind == SettingKind::Real; }
bool isInteger(SettingKind kind) {
  return kind == SettingKind::Count || kind == SettingKind::Bytes || kind == SettingKind::Speed ||
         kind == SettingKind::Operations || kind == SettingKind::Time || kind == SettingKind::Power;
}

std::optional<double> numberOf(Attribute value, bool allowReal) {
  if (auto real = dyn_cast<FloatAttr>(value); real && allowReal)
    return real.getValueAsDouble();
  auto integer = dyn_cast<IntegerAttr>(value); // delay = 1, say
  if (integer && integer.getType().isSignlessInteger(64))
    return double(integer.getInt());
  return std::nullopt;
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

/// A number in the range of its row, or its default.
bool isNumber(Attribute value, const SettingRow &row) {
  std::optional<double> number = numberOf(value, isReal(row.kind));
  return number && (row.Contains(*number) || *number == std::stod(row.value));
}

bool fits(Attribute value, const SettingRow &row) {
  switch (row.kind) {
  case SettingKind::Flag:
    return isa<BoolAttr>(value);
  case SettingKind::Word:
  case SettingKind::Rate:
    return isWordOf(value, row.list);
  case SettingKind::Place:
    return isPlace(value);
  case SettingKind::Section:
    return isa<DictionaryAttr>(value);
  case SettingKind::List: {
    auto list = dyn_cast<ArrayAttr>(value);
    return list && llvm::all_of(list, llvm::IsaPred<DictionaryAttr>);
  }
  case SettingKind::Text:
  case SettingKind::Path:
  case SettingKind::Data:
    return isa<StringAttr>(value);
  default:
    return isNumber(value, row);
  }
}

/// `"a", "b" or "c"`.
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

std::string describe(const SettingRow &row) {
  switch (row.kind) {
  case SettingKind::Flag:
    return "true or false";
  case SettingKind::Word:
  case SettingKind::Rate:
    return describeWords(row.list);
  case SettingKind::Place:
    return describeWords(row.list) +
           ", or a list of them; behind each but the last a number of layers, then shares above 0, "
           "together below 1";
  case SettingKind::Section:
    return "a dictionary";
  case SettingKind::List:
    return "a list of dictionaries";
  case SettingKind::Text:
  case SettingKind::Path:
  case SettingKind::Data:
    return "a string";
  default:
    return describeRange(row);
  }
}

//===----------------------------------------------------------------------===//
// All values
//===----------------------------------------------------------------------===//

/// The settings of a dictionary, all keys of which stand behind `prefix`. `what`: "@plan".
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
    if (!fits(value, *row))
      return op->emitOpError("expected ")
             << path << " to be " << describe(*row) << " but found " << value;
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

/// Sets a member from its attribute.
struct Reader {
  DictionaryAttr dictionary;

  template <typename Member> void operator()(const SettingRow &row, Member &member) const {
    if (Attribute value = dictionary.get(row.key))
      read(value, member);
  }

  template <typename Settings> static void readAll(DictionaryAttr dictionary, Settings &settings) {
    if (dictionary)
      settings.Visit(Reader{dictionary});
  }
  static void read(Attribute value, std::string &member) {
    member = cast<StringAttr>(value).getValue().str();
  }
  static void read(Attribute value, bool &member) { member = cast<BoolAttr>(value).getValue(); }
  static void read(Attribute value, int64_t &member) { member = cast<IntegerAttr>(value).getInt(); }
  static void read(Attribute value, double &member) { member = *numberOf(value, true); }
  static void read(Attribute value, Placement &member) {
    member.parts.clear();
    auto parts = dyn_cast<ArrayAttr>(value);
    for (Attribute part : parts ? parts.getValue() : ArrayRef<Attribute>(value)) {
      if (auto share = dyn_cast<FloatAttr>(part))
        member.parts.back().share = share.getValueAsDouble();
      else if (auto layers = dyn_cast<IntegerAttr>(part))
        member.parts.back().layers = layers.getInt();
      else
        member.parts.push_back({*ParseWord<HomeTier>(cast<StringAttr>(part).getValue())});
    }
  }
  template <typename Enum>
  static std::enable_if_t<std::is_enum_v<Enum>> read(Attribute value, Enum &member) {
    member = *ParseWord<Enum>(cast<StringAttr>(value).getValue());
  }
  template <typename Settings>
  static std::enable_if_t<std::is_class_v<Settings>> read(Attribute value, Settings &member) {
    readAll(cast<DictionaryAttr>(value), member);
  }
  template <typename Settings> static void read(Attribute value, std::vector<Settings> &member) {
    for (auto section : cast<ArrayAttr>(value).getAsRange<DictionaryAttr>())
      readAll(section, member.emplace_back());
  }
};

/// Makes attributes of members.
struct Writer {
  Builder builder;

  Attribute write(const std::string &member) { return builder.getStringAttr(member); }
  Attribute write(bool member) { return builder.getBoolAttr(member); }
  Attribute write(int64_t member) { return builder.getI64IntegerAttr(member); }
  Attribute write(double member) { return builder.getF64FloatAttr(member); }
  Attribute write(const Placement &member) {
    SmallVector<Attribute> parts;
    for (const Placement::Part &part : member.parts) {
      parts.push_back(write(WordOf(part.tier)));
      if (&part != &member.parts.back())
        parts.push_back(part.layers ? write(part.layers) : write(part.share));
    }
    return parts.size() == 1 ? parts[0] : builder.getArrayAttr(parts);
  }
  template <typename Enum> std::enable_if_t<std::is_enum_v<Enum>, Attribute> write(Enum member) {
    return write(WordOf(member));
  }
  template <typename Settings> Attribute write(const std::vector<Settings> &member) {
    SmallVector<Attribute> list;
    for (const Settings &section : member)
      list.push_back(write(section));
    return builder.getArrayAttr(list);
  }
  template <typename Settings>
  std::enable_if_t<std::is_class_v<Settings>, Attribute> write(const Settings &settings) {
    return writeAll(settings);
  }
  template <typename Settings> DictionaryAttr writeAll(const Settings &settings) {
    SmallVector<NamedAttribute> members;
    const DictionaryAttr absent = writeDefaults(Settings());
    settings.Visit([&](const SettingRow &row, const auto &member) {
      Attribute value = write(member);
      if (value != absent.get(row.key))
        members.push_back(builder.getNamedAttr(row.key, value));
    });
    return builder.getDictionaryAttr(members);
  }
  template <typename Settings> DictionaryAttr writeDefaults(const Settings &defaults) {
    SmallVector<NamedAttribute> members;
    defaults.Visit([&](const SettingRow &row, const auto &member) {
      members.push_back(builder.getNamedAttr(row.key, write(member)));
    });
    return builder.getDictionaryAttr(members);
  }
};

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
  MachineSettings machine;
  Reader::readAll(getSettings(), machine);
  llvm::StringSet<> paths;
  for (const SsdSettings &ssd : machine.ssd)
    if (!paths.insert(ssd.path).second)
      return emitOpError("has the ssd \"") << ssd.path << "\" twice";
  return success();
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

Config::Config(ModuleOp module) {
  Reader::readAll(getConfig(module, kModelConfig), model);
  Reader::readAll(getConfig(module, kTrainConfig), train);
  Reader::readAll(getConfig(module, kPlanConfig), plan);
  Reader::readAll(getConfig(module, kMachineConfig), machine);
}

ActivationSettings getActivation(Operation *op) {
  ActivationSettings settings;
  Reader::readAll(op->getAttrOfType<DictionaryAttr>(kActivationAttr), settings);
  return settings;
}

Placement readPlace(Attribute place) {
  Placement placement;
  Reader::read(place, placement);
  return placement;
}
Attribute writePlace(MLIRContext *context, const Placement &place) {
  return Writer{Builder(context)}.write(place);
}

DictionaryAttr getSettingsAttr(MLIRContext *context, const ModelSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const TrainSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const PlanSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const MachineSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
}
DictionaryAttr getSettingsAttr(MLIRContext *context, const ActivationSettings &settings) {
  return Writer{Builder(context)}.writeAll(settings);
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

static LogicalResult verifyActivation(Operation *op, Attribute value) {
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

LogicalResult BoaDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  Attribute value = attr.getValue();
  if (attr.getName() == kNameAttr) {
    // It becomes a part of a storage's name.
    auto name = dyn_cast<StringAttr>(value);
    auto isLetter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    if (!name || name.empty() || !llvm::all_of(name.getValue(), isLetter))
      return op->emitOpError("expected boa.name to be letters, digits and '_' but found ") << value;
  }
  if (attr.getName() == kActivationAttr)
    return verifyActivation(op, value);
  if (attr.getName() == kPlaceAttr && !isPlace(value))
    return op->emitOpError("expected boa.place to be a place, as in boa.config @plan, but found ")
           << value;
  return success();
}

} // namespace boa
