//===- Frontend.h - From spec files to a checked specification -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frontend's public surface (frontend/IRGen.h turns its result into IR).
// Reads, parses, applies overrides and checks; prints nothing and throws nothing.
// Any bytes are accepted as input: `diagnostics` has their errors, in the form
//
//   gpt.boa:14:27: error: expected heads = 5 to divide width = 256
//       let a = attention(q, k, v, heads, causal)
//                                  ^~~~~
//
//===----------------------------------------------------------------------===//
#ifndef BOA_FRONTEND_FRONTEND_H
#define BOA_FRONTEND_FRONTEND_H

#include "frontend/Spec.h"

#include <optional>

namespace boa::frontend {

/// A text and the name that messages give it. Paths in it are relative to the
/// folder in the name.
struct InputText {
  std::string name;
  std::string text;
};

struct FrontendResult {
  /// Present if and only if there were no errors.
  std::optional<Spec> spec;
  /// The program with its overrides, in the language itself (--emit=ast); empty
  /// where it did not parse.
  std::string ast;
  /// All errors, ready to print; empty if and only if `spec` is present.
  std::string diagnostics;
};

/// The adapters of a state, or of a folder. A spec that gives none has these with their dropout,
/// and must not have others. An option may change the dropout.
struct HeldAdapters {
  std::string of;            // "`state/lora`", for messages
  std::string text;          // as a spec writes them, without dropout: "lora(rank = 8, ...)"
  std::string dropout = {};  // "0.05"; may be empty
  bool bind = true;          // false: a spec may have others
  std::string othersBy = {}; // for a refusal: how else to have others; may be empty
};

/// `overrides` are the texts after --set, such as "train.steps=50", applied in
/// order.
FrontendResult compileTexts(const std::vector<InputText> &inputs,
                            const std::vector<std::string> &overrides = {},
                            const std::optional<HeldAdapters> &held = std::nullopt);

/// The same, from files; `-` is standard input, whose paths are relative to the
/// working directory.
FrontendResult compileFiles(const std::vector<std::string> &paths,
                            const std::vector<std::string> &overrides = {},
                            const std::optional<HeldAdapters> &held = std::nullopt);

/// What texts say that may need the adapters of a state to be right.
struct Outline {
  std::string state;        // where it lives if no command names a folder
  bool hasAdapters = false; // of their own, or by an option as a whole
};

/// None if they are no specs. Of other errors it knows nothing.
std::optional<Outline> outlineTexts(const std::vector<InputText> &inputs,
                                    const std::vector<std::string> &overrides);

/// Reads them once, to compile them several times. `diagnostics` has their errors.
std::vector<InputText> readFiles(const std::vector<std::string> &paths, std::string &diagnostics);

struct FormatResult {
  /// The text, and the text in its canonical layout, which exists if and only if the text parses.
  std::string before;
  std::optional<std::string> after;
  std::string diagnostics;
};

/// Lays a text out anew. Blanks and line breaks change, tokens and comments stay.
FormatResult formatText(const InputText &input);
FormatResult formatFile(const std::string &path);

/// A setting of a train block or of a machine, in words: for help and completion.
struct SettingInfo {
  std::string path;   // as --set takes it: train.optimizer.betas
  std::string calls;  // where it is an argument, of what: adamw
  std::string values; // what it may be
  std::vector<std::string> words;
  std::string fallback; // its default, as one writes it
  std::string absent;   // what `none` means
  bool isRequired = false;
  bool isOfPattern = false; // of a block for a pattern of names, where --set does not reach
  std::string help;
};

/// Paths of the settings with this last name, of those the least nested: `lr` is
/// train.optimizer.lr.
std::vector<std::string> settingsNamed(std::string_view name);

/// All of them, in the order in which a person writes them.
std::vector<SettingInfo> listSettings();

/// A function of the language, in words.
struct BuiltinInfo {
  std::string signature, shapes, help;
};
std::vector<BuiltinInfo> listBuiltins();

} // namespace boa::frontend

#endif // BOA_FRONTEND_FRONTEND_H
