//===- family.h - A family of published models ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A family is a table: the keys of its config.json, what each becomes in the spec, and the spec
// with the names of its tensors. The readers of configurations and the writer of specs know no
// family.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_FAMILY_H
#define BOA_RUNTIME_WEIGHTS_FAMILY_H

#include "nlohmann/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boa {

/// A key of config.json, or several that say one thing. The spec knows it as `value`.
struct ConfigKey {
  enum class Kind {
    whole,
    real,
    flag,
    must,       // `fallback` is the only value that Boa has
    fixed,      // no key: the value is `fallback`
    activation, // a name of transformers for a function that the language has
    dropout,    // changes training alone, so it is noted
    rotary,     // rope_theta and its kin; `fallback` is the base
    window,     // sliding_window and its kin
  };
  /// Whether a family has a window of attention.
  enum class Window { none, always, if_used };

  Kind kind;
  std::string key, value;
  /// What an absent key means; null: the key is required.
  nlohmann::json fallback;
  /// A whole number of others, if the key is absent: "heads", "4 * width", "width / heads".
  std::string formula;
  double least = 0, most = 0;
  /// A name that stands for the key where that is absent.
  std::string alias;
  /// Names that some files have beside the key. They must say the same.
  std::vector<std::string> same;
  bool even = false;
  std::string divisor_of; // a value
  Window window = Window::none;
  /// What the language would need to have for another value than `fallback`.
  std::string lacks;

  ConfigKey &Or(nlohmann::json of_absent);
  ConfigKey &From(std::string of_others);
  ConfigKey &Alias(std::string name);
  ConfigKey &Same(std::vector<std::string> names);
  ConfigKey &Even();
  ConfigKey &DivisorOf(std::string other);
};

ConfigKey Whole(std::string key, std::string value, int64_t most = INT32_MAX);
ConfigKey Real(std::string key, std::string value, double least, double most);
/// The eps of a norm, which divides by its root.
ConfigKey Eps(std::string key, double of_absent);
/// The number of layers, or of heads.
ConfigKey Count(std::string key, std::string value);
ConfigKey Flag(std::string key, std::string value, bool of_absent = false);
ConfigKey Must(std::string key, nlohmann::json only, std::string lacks = "");
ConfigKey Fixed(std::string value, nlohmann::json is);
/// A number that follows from others and has no key, unless `same` names it.
ConfigKey Derived(std::string value, std::string formula);
ConfigKey Activation(std::string key, std::string of_absent);
ConfigKey Dropout(std::string key, double of_absent = 0);
ConfigKey Rotary(double base);
ConfigKey WindowOf(ConfigKey::Window window);

/// How a GGUF file has a model. Names of its keys are without the architecture, those of tensors
/// without ".weight" and "blk.N.".
struct GgufForm {
  struct Name {
    const char *here, *there;
  };
  std::string architecture; // empty: the format does not know it, or does not say all of it
  std::string layers;       // the beginning of names of what a layer has: "model.layers."
  bool paired = false;      // rows of queries and keys stand in pairs
  bool transposed = false;  // matrices of layers are the other way round
  std::vector<Name> keys;   // and those of config.json; a key without a default must be there
  std::vector<Name> flags;  // tensors whose presence is a flag of config.json
  std::vector<Name> tensors;
};

/// The values `vocab`, `positions`, `width`, `heads` and `depth` are in every table.
struct Family {
  std::string name;         // its model_type, and the model's name in a spec
  std::string architecture; // the class that a folder was saved from
  std::string title;        // "Llama 2 and 3"
  std::string limits;       // what its table has, or has not, for a list
  std::string base;         // the model without its head, of which a folder may be: "model."
  std::string first;        // the table of the embedding in such a folder: "embed_tokens.weight"
  /// The head's module and its bias, where its weight is the table, which is `first`. The bias has
  /// its name in a folder; empty: there is none.
  std::string tied_head, head_bias;
  /// Modules that are not in `base`. Those that end in a point stand for what is in them.
  std::vector<std::string> heads;
  /// Tensors of other heads that it was trained with, by the beginnings of their names.
  std::vector<std::string> unused;
  bool masked = false; // it learns masked tokens
  std::vector<ConfigKey> keys;
  std::vector<std::string> harmless; // keys that change nothing
  GgufForm gguf;
  /// The model block of the spec, as a template of Jinja. It sees all values, what the writer of
  /// specs says of the folder, and the macros there.
  std::string spec;

  /// One of `keys`, which must be there.
  ConfigKey &Key(const std::string &name);
  /// The same; null: it is not there.
  const ConfigKey *Find(const std::string &name) const;
};

/// All that are imported.
const std::vector<Family> &Families();
/// One whose head, if it is tied, is that module; null: there is none.
const Family *FamilyOfHead(const std::string &module);
/// The module of the head that has the weight of a table, if the model ties them: "lm_head" of
/// "model.embed_tokens". Empty: no family has a table of that name.
std::string HeadTiedTo(const std::string &module);
/// The one that GGUF files call so; null: there is none.
const Family *FamilyOfGguf(const std::string &architecture);
/// Their names there, for messages: "gpt2, llama and qwen2".
std::string GgufArchitectures();

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_FAMILY_H
