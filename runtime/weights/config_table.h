//===- config_table.h - A configuration by the table of its family -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_WEIGHTS_CONFIG_TABLE_H
#define BOA_RUNTIME_WEIGHTS_CONFIG_TABLE_H

#include "runtime/weights/config_reader.h"
#include "runtime/weights/model_config.h"

namespace boa {

/// Reads the keys of `config.family` into `config.values`. Faults come into the reader; it then
/// has refused each key that the table does not know, too.
void ReadByTable(ConfigReader &, ModelConfig &config);

} // namespace boa

#endif // BOA_RUNTIME_WEIGHTS_CONFIG_TABLE_H
