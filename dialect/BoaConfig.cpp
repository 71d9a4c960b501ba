//===- BoaConfig.cpp - The configuration, verified ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// boa.config against the table of settings: no key that the table has not, no value
// of another type, out of its range, or not among its words. Who reads a setting
// later may rely on it.
//
//===----------------------------------------------------------------------===//
#include "dialect/Config.h"
#include "runtime/support/nearest.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace boa {

namespace {

/// A row of the table.
struct Setting {
  StringRef key;
  /// What a value is to be, in words, and whether one is that.
  std::string expected;
  bool (*fits)(Attribute);
  /// Of a dictionary, or a list of them: the settings in it.
  ArrayRef<Setting> (*section)() = nullptr;
};

template <typename T> struct Range {
  T least, most = std::numeric_limits<T>::max();
  bool withoutMost = false;

  static constexpr Range from(T least) { return {least}; }
  constexpr Range to(T most) const { return {least, most, false}; }
  constexpr Range below(T most) const { return {least, most, true}; }

  bool contains(T value) const {
    return value >= least && (withoutMost ? value < most : value <= most);
  }
  std::string describe(StringRef what) const {
    if (most == std::numeric_limits<T>::max())
      return llvm::formatv("{0} of at least {1}", what, print(least));
    return llvm::formatv(withoutMost ? "{0} of at least {1} and below {2}"
                                     : "{0} between {1} and {2}",
                         what, print(least), print(most));
  }
  static std::string print(int64_t value) { return std::to_string(value); }
  static std::string print(double value) { return llvm::formatv("{0}", llvm::format("%g", value)); }
};

template <typename T> bool is(Attribute value) { return isa<T>(value); }

bool fitsInteger(Attribute value, Range<int64_t> range) {
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getType().isSignlessInteger(64) && range.contains(integer.getInt());
}

bool fitsReal(Attribute value, Range<double> range) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return range.contains(real.getValueAsDouble());
  auto integer = dyn_cast<IntegerAttr>(value); // delay = 1, say
  return integer && integer.getType().isSignlessInteger(64) &&
         range.contains(double(integer.getInt()));
}

template <typename Enum> bool fitsWord(Attribute value) {
  auto word = dyn_cast<StringAttr>(value);
  return word && symbolizeEnum<Enum>(word.getValue());
}

/// Each share is of all chunks, and leaves some to the tiers behind it.
bool fitsPlace(Attribute value) {
  auto parts = dyn_cast<ArrayAttr>(value);
  if (!parts)
    return fitsWord<Tier>(value);
  double left = 1;
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (i % 2 == 0) {
      if (!fitsWord<Tier>(part))
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

bool fitsList(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, llvm::IsaPred<DictionaryAttr>);
}

/// `"a", "b" or "c"`.
template <typename Enum> std::string describeWords(unsigned last) {
  std::string text;
  for (unsigned i = 0; i <= last; ++i)
    text += (i == 0 ? "\"" : i < last ? ", \"" : " or \"") + stringifyEnum(Enum(i)).str() + '"';
  return text;
}

#define BOA_SETTINGS(NAME)                                                                         \
  ArrayRef<Setting> settingsOf##NAME() {                                                           \
    static const std::vector<Setting> settings = {
#define BOA_TEXT(KEY, FALLBACK, HELP) {#KEY, "a string", is<StringAttr>},
#define BOA_WORD(KEY, ENUM, FALLBACK, HELP)                                                        \
  {#KEY, describeWords<ENUM>(getMaxEnumValFor##ENUM()), fitsWord<ENUM>},
#define BOA_INTEGER(KEY, RANGE, FALLBACK, HELP)                                                    \
  {#KEY, Range<int64_t>::RANGE.describe("an i64"),                                                 \
   [](Attribute value) { return fitsInteger(value, Range<int64_t>::RANGE); }},
#define BOA_REAL(KEY, RANGE, FALLBACK, HELP)                                                       \
  {#KEY, Range<double>::RANGE.describe("a number"),                                                \
   [](Attribute value) { return fitsReal(value, Range<double>::RANGE); }},
#define BOA_FLAG(KEY, FALLBACK, HELP) {#KEY, "true or false", is<BoolAttr>},
#define BOA_PLACE(KEY, HELP)                                                                       \
  {#KEY,                                                                                           \
   describeWords<Tier>(getMaxEnumValForTier()) +                                                   \
       ", or a list of them with a share above 0 behind each but the last, together below 1",      \
   fitsPlace},
#define BOA_SECTION(KEY, NAME, HELP) {#KEY, "a dictionary", is<DictionaryAttr>, settingsOf##NAME},
#define BOA_LIST(KEY, NAME, HELP) {#KEY, "a list of dictionaries", fitsList, settingsOf##NAME},
#define BOA_END                                                                                    \
  }                                                                                                \
  ;                                                                                                \
  return settings;                                                                                 \
  }
#include "dialect/Settings.def"

/// The settings of a dictionary, all keys of which stand behind `prefix`.
LogicalResult verify(ConfigOp op, DictionaryAttr settings, ArrayRef<Setting> known,
                     const std::string &prefix) {
  for (NamedAttribute given : settings) {
    std::string path = prefix + given.getName().str();
    auto hasKey = [&](const Setting &setting) { return setting.key == given.getName(); };
    const Setting *setting = llvm::find_if(known, hasKey);
    if (setting == known.end()) {
      std::vector<std::string> keys;
      for (const Setting &other : known)
        keys.push_back(other.key.str());
      std::string near = NearestWord(given.getName().strref(), keys);
      auto diag = op.emitOpError("@") << op.getSymName() << " has no setting '" << path << "'";
      if (!near.empty())
        diag << ", did you mean '" << prefix << near << "'?";
      return diag;
    }
    Attribute value = given.getValue();
    if (!setting->fits(value))
      return op.emitOpError("expected ")
             << path << " to be " << setting->expected << " but found " << value;
    if (!setting->section)
      continue;
    if (auto section = dyn_cast<DictionaryAttr>(value)) {
      if (failed(verify(op, section, setting->section(), path + ".")))
        return failure();
      continue;
    }
    for (auto [i, section] : llvm::enumerate(cast<ArrayAttr>(value).getAsRange<DictionaryAttr>()))
      if (failed(verify(op, section, setting->section(), llvm::formatv("{0}[{1}].", path, i))))
        return failure();
  }
  return success();
}

} // namespace

LogicalResult ConfigOp::verify() {
  if (getSymName() == kMachineConfig) {
    if (failed(boa::verify(*this, getSettings(), settingsOfMachine(), "")))
      return failure();
    llvm::StringSet<> paths;
    for (const SsdSettings &ssd : MachineSettings(getSettings()).ssd())
      if (!ssd.path().empty() && !paths.insert(ssd.path()).second)
        return emitOpError("has the ssd \"") << ssd.path() << "\" twice";
    return success();
  }
  if (getSymName() != kTrainConfig)
    return emitOpError("expected to be named @") << kTrainConfig << " or @" << kMachineConfig;
  if (failed(boa::verify(*this, getSettings(), settingsOfTrain(), "")))
    return failure();
  TrainConfig train(getSettings());
  if (train.batch() % train.micro_batch() != 0)
    return emitOpError("expected batch to be a multiple of micro_batch but found ")
           << train.batch() << " and " << train.micro_batch();
  OptimizerSettings optimizer = train.optimizer();
  if (optimizer.rate() != RateKind::constant && optimizer.floor() > optimizer.peak())
    return emitOpError("expected optimizer.floor to be at most optimizer.peak but found ")
           << optimizer.floor() << " and " << optimizer.peak();
  if (train.objective() == Objective::masked && train.vocab() != 0 &&
      train.mask_token() >= train.vocab())
    return emitOpError("expected mask_token to be below vocab but found ")
           << train.mask_token() << " and " << train.vocab();
  auto place = getSettings().getAs<DictionaryAttr>("place");
  for (StringRef role : {"checkpoints", "boundary_gradients", "saved"})
    if (auto parts = place ? place.getAs<ArrayAttr>(role) : ArrayAttr(); parts && parts.size() > 1)
      return emitOpError("an activation is moved in one piece: expected one place for ")
             << role << ", not shares";
  return success();
}

//===----------------------------------------------------------------------===//
// Access
//===----------------------------------------------------------------------===//

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

} // namespace boa
