//===- SpecData.cpp - The data that a spec names --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/SpecData.h"

#include "frontend/Frontend.h"
#include "runtime/generate/template_date.h"
#include "runtime/trainer/opening.h"

#include <cstdio>
#include <string>

namespace boa {

absl::Status describeDataOf(const CompileRequest &compile, const TrainerOptions &train,
                            const DescribeDataOptions &describe, std::ostream &out) {
  frontend::FrontendResult result = frontend::compileFiles(compile.files, compile.overrides);
  std::fputs(result.diagnostics.c_str(), stderr);
  if (!result.spec)
    return absl::InvalidArgumentError("");
  Program program;
  program.model = result.spec->shape;
  program.train = result.spec->train;
  program.plan = result.spec->plan;
  if (!train.data.empty())
    program.train.data = train.data;
  DataOptions data(program);
  data.document_mask = program.train.document_mask;
  const std::string state = train.state.empty() ? FolderOfState(result.spec->machine) : train.state;
  data.cache.directory = FolderOfTokens(train.tokens, state);
  data.cache.date = TemplateDateOf(state);
  data.cache.is_named = !train.tokens.empty();
  return DescribeData(program.train, data, describe, out);
}

void countSteps(Program &program) {
  if (program.train.epochs == 0)
    return;
  DataOptions options(program);
  const std::string state = FolderOfState(program.machine);
  options.cache.directory = FolderOfTokens("", state);
  options.cache.date = TemplateDateOf(state);
  options.cache.is_named = options.cache.makes = false;
  const absl::StatusOr<Data> data = Data::Open(options);
  if (!data.ok())
    return;
  if (absl::StatusOr<int64_t> steps = data->StepOfEpochs(program.train.epochs); steps.ok())
    program.train.steps = *steps;
}

} // namespace boa
