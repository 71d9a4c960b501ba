//===- Generate.cpp - boa sample and boa chat -----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Generate.h"

#include "runtime/abi/sources.h"
#include "runtime/data/data.h"
#include "runtime/generate/chat.h"
#include "runtime/generate/sample.h"
#include "runtime/support/printable.h"
#include "runtime/support/printable_stream.h"
#include "runtime/weights/folder_files.h"
#include "tools/ChatTerminal.h"
#include "tools/CompiledProgram.h"
#include "tools/HeldAdapters.h"

#include "absl/strings/str_cat.h"

#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace boa {
namespace {

/// A program that continues a text, in this process.
struct Continuing {
  CompiledProgram compiled;
  Kernels kernels = nullptr;
  GenerationEntries entries;

  absl::Status compile(Invocation &invocation) {
    invocation.compile.purpose = invocation.noCache ? Purpose::predict : Purpose::generate;
    absl::Status status = compiled.compile(invocation.compile);
    if (status.ok())
      status = takeData(invocation.train.data);
    if (status.ok())
      status = compiled.find(kernels);
    if (status.ok() && invocation.noCache)
      status = compiled.find("boa_predict", entries.predict);
    if (status.ok() && !invocation.noCache)
      status = compiled.find("boa_prefill", entries.prefill);
    if (status.ok() && !invocation.noCache)
      status = compiled.find("boa_generate", entries.generate);
    if (!status.ok())
      return status;
    nameHeldAdapters(invocation.compile, compiled.program.train, stderr);
    if (invocation.train.state.empty())
      invocation.train.state = FolderOfState(compiled.program.machine);
    return absl::OkStatus();
  }

private:
  /// `--data` replaces the data of the spec. The data tells the tokenizer and the template.
  absl::Status takeData(const std::string &data) {
    std::string error;
    if (data.empty())
      return absl::OkStatus();
    if (ParseSources(data, error).empty())
      return absl::InvalidArgumentError(absl::StrCat("--data ", data, ": ", error));
    compiled.program.train.data = data;
    return absl::OkStatus();
  }
};

GenerationSource sourceOf(const Invocation &invocation) {
  return {invocation.weights, invocation.train.state, invocation.train.changed_model};
}

/// A conversation without --tokenizer has the tokenizer of the data, or else of the import.
void findTokenizer(const Program &program, const Invocation &invocation, CodecOptions &options) {
  std::string unread; // the compiler has read the data
  for (const DataSource &source : ParseSources(program.train.data, unread))
    if (options.tokenizer.empty())
      options.tokenizer = source.tokenizer;
  for (const std::string &spec : invocation.operands)
    for (const char *name : {"tokenizer.json", "tokenizer.model"}) {
      const std::string path = FolderBeside(spec) + "/" + name;
      std::error_code error;
      if (options.tokenizer.empty() && std::filesystem::exists(path, error))
        options.tokenizer = path;
    }
}

} // namespace

absl::Status runSample(Invocation &invocation) {
  Continuing continuing;
  if (absl::Status status = continuing.compile(invocation); !status.ok())
    return status;
  const Program &program = continuing.compiled.program;
  if (invocation.sample.chat)
    findTokenizer(program, invocation, invocation.sample);
  if (const std::string note = DescribeUnusedTokens(DataOptions(program));
      !note.empty() && invocation.sample.tokenizer.empty())
    std::cerr << note << "\n";
  const bool isTerminal = isatty(STDOUT_FILENO);
  PrintableStream terminal(std::cout);
  absl::Status status =
      Sample(program, continuing.kernels, continuing.entries, sourceOf(invocation),
             invocation.sample, isTerminal ? terminal : std::cout, std::cerr);
  // The prompt of a shell should not stand behind the text.
  if (isTerminal)
    terminal.Finish();
  return status;
}

absl::Status runChat(Invocation &invocation) {
  Continuing continuing;
  if (absl::Status status = continuing.compile(invocation); !status.ok())
    return status;
  const Program &program = continuing.compiled.program;
  ChatOptions options{invocation.sample, invocation.sample, invocation.system};
  options.length = invocation.answerLength.value_or(options.length);
  findTokenizer(program, invocation, options);
  auto chat =
      Chat::Create(program, continuing.kernels, continuing.entries, sourceOf(invocation), options);
  if (!chat.ok())
    return chat.status();
  for (const std::string &note : (*chat)->notes())
    std::cerr << Printable(note) << "\n";
  return converse(**chat, program, invocation.sample.timing);
}

} // namespace boa
