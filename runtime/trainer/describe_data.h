//===- describe_data.h - What a training will read --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `boa data`: the counts of each source (runtime/data/survey.h), and the first sequences of step 1
// as text. Makes the tokens of texts and conversations where they are not kept yet. The keys of the
// JSON stand in examples/README.md; scripts rely on them.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TRAINER_DESCRIBE_DATA_H
#define BOA_RUNTIME_TRAINER_DESCRIBE_DATA_H

#include "runtime/abi/program.h"
#include "runtime/data/data.h"

#include "absl/status/status.h"

#include <cstdint>
#include <ostream>
#include <string>

namespace boa {

struct DescribeDataOptions {
  std::string tokenizer; // of tokens(...) that names none; may be empty
  int64_t sequences = 2; // to show
  bool json = false;
  bool colours = false; // of a terminal
};

/// `data` is where tokens are kept. Notes go to standard error.
absl::Status DescribeData(const TrainSettings &, DataOptions data, const DescribeDataOptions &,
                          std::ostream &out);

} // namespace boa

#endif // BOA_RUNTIME_TRAINER_DESCRIBE_DATA_H
