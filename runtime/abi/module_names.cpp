//===- module_names.cpp - Modules of published models ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/module_names.h"

#include <algorithm>

namespace boa {

std::string ModuleOf(const std::string &tensor) { return tensor.substr(0, tensor.rfind('.')); }

std::string InBaseModel(const std::string &module) {
  if (module.rfind("transformer.layer.", 0) == 0) // DistilBERT's, in its base
    return module;
  for (const std::string base : {"model.", "transformer.", "bert.", "distilbert."})
    if (module.compare(0, base.size(), base) == 0)
      return module.substr(base.size());
  return module;
}

std::string OfAllLayers(const std::string &module) {
  std::string text;
  for (size_t at = 0; at <= module.size();) {
    const size_t dot = std::min(module.find('.', at), module.size());
    const std::string word = module.substr(at, dot - at);
    const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    text += (at ? "." : "") + (is_number ? "*" : word);
    at = dot + 1;
  }
  return text;
}

std::string ShortestEnd(const std::string &module,
                        const std::function<bool(const std::string &end)> &means_another) {
  size_t at = module.rfind('.') + 1; // 0 without a dot
  while (at > 0 && means_another(module.substr(at)))
    at = at < 2 ? 0 : module.rfind('.', at - 2) + 1;
  return module.substr(at);
}

} // namespace boa
