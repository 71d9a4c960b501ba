//===- module_names.h - Modules of published models -------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor of a published model belongs to a module: "model.layers.3.mlp.up_proj" has the tensor
// "model.layers.3.mlp.up_proj.weight". PEFT names modules by the ends of their names.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_MODULE_NAMES_H
#define BOA_RUNTIME_ABI_MODULE_NAMES_H

#include <functional>
#include <string>

namespace boa {

/// The module of a tensor: "model.norm" of "model.norm.weight".
std::string ModuleOf(const std::string &tensor);
/// Its name in a folder of the base model, without the head: "norm".
std::string InBaseModel(const std::string &module);
/// The same module in all layers: "layers.*.mlp.up_proj" of "layers.3.mlp.up_proj".
std::string OfAllLayers(const std::string &module);
/// The shortest end of its name, in whole words, that means no other module; else all of it.
std::string ShortestEnd(const std::string &module,
                        const std::function<bool(const std::string &end)> &means_another);

} // namespace boa

#endif // BOA_RUNTIME_ABI_MODULE_NAMES_H
