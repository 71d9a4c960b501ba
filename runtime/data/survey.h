//===- survey.h - Counts of what a model will read --------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A survey reads all windows of the sources once, as a training would. So it counts what is learnt,
// and not what the files say.
//
// A document is longer than the context if it has more tokens. It is split if one of its targets is
// in a sequence that does not hold its beginning. Where documents are packed, short ones may be
// split, too.
//
// Threads: one. Errors: those of the sources; kCancelled if `stops` says so.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DATA_SURVEY_H
#define BOA_RUNTIME_DATA_SURVEY_H

#include "runtime/data/data.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace boa {

/// Numbers by how often each comes: few differ, however many there are.
class Counts {
public:
  void Add(int64_t number) {
    ++of[number];
    ++all;
  }
  int64_t size() const { return all; }
  /// The least number that at least this share of them does not exceed. There is one at least.
  int64_t Quantile(double share) const;
  int64_t Above(int64_t number) const;

private:
  std::map<int64_t, int64_t> of;
  int64_t all = 0;
};

/// Of a source that is to train on, to validate, or both.
struct SourceSurvey {
  const Data::Part *part = nullptr; // to train on, or if it is for validation alone, to validate
  bool trains = false, validates = false;
  bool tells_documents = false; // else `lengths` and the counts of documents are empty
  Counts lengths;               // tokens of each document
  int64_t split = 0;            // documents with a target that does not see their beginning
  int64_t untargeted = 0;       // documents without a target
  int64_t tokens = 0, targets = 0;
  int64_t sequences = 0, left_out = 0; // with a target, and without
  int64_t padding = 0;                 // positions without a token, of sequences with a target
  struct Use {
    int64_t sequences = 0, targets = 0;
  } to_train, to_validate;
};

struct SurveyOptions {
  /// How many windows are done, of how many; often.
  std::function<void(int64_t, int64_t)> show = [](int64_t, int64_t) {};
  std::function<bool()> stops = [] { return false; };
};

/// The sources to train on in their order, then those that are for validation alone. They refer to
/// the data. `options`: those of the data.
absl::StatusOr<std::vector<SourceSurvey>> SurveyData(const Data &, const DataOptions &options,
                                                     const SurveyOptions &);

} // namespace boa

#endif // BOA_RUNTIME_DATA_SURVEY_H
