//===- tokenizer.cpp - Any bytes as the file of a tokenizer ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file that opens encodes texts or refuses them, with ids that it has. Their text comes back
// token by token. A text that is cut where FindCut says has the tokens of the whole.
//
//===----------------------------------------------------------------------===//
#include "runtime/formats/gguf.h"
#include "runtime/tokenizer/tokenizer.h"
#include "test/fuzz/support.h"

using namespace boa;

namespace {

const char *const kTexts[] = {
    "",
    " ",
    "one two  three\n\nfour",
    "It's 12345 CamelCase, isn't it?\r\n\t",
    "\xe4\xb8\xad\xe6\x96\x87 e\xcc\x81 \xf0\x9f\xa6\x99 <s>a<|end|> \xe2\x96\x81",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b"};

void TryText(const std::shared_ptr<const Tokenizer> &tokenizer, const std::string &text) {
  std::vector<int32_t> tokens, parts;
  if (!Encoder(tokenizer).Encode(text, {}, tokens).ok())
    return;
  for (int32_t token : tokens)
    fuzz::Require(token >= 0 && token < tokenizer->size(), "an id is in the vocabulary");
  fuzz::Require(Decode(tokenizer, tokens, true).ok(), "tokens that were made have a text");

  const size_t cut = tokenizer->FindCut(text);
  fuzz::Require(cut < text.size() || text.empty(), "a cut is within the text");
  if (cut == 0)
    return;
  EncodeOptions first, second;
  first.closes = false;
  second.begins = false;
  Encoder encoder(tokenizer);
  fuzz::Require(encoder.Encode(text.substr(0, cut), first, parts).ok() &&
                    encoder.Encode(text.substr(cut), second, parts).ok(),
                "parts of a text have tokens");
  fuzz::Require(parts == tokens, "both parts have the tokens of the whole");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string input(reinterpret_cast<const char *>(data), size);
  const std::string path = fuzz::Scratch() + "/tokenizer";
  fuzz::WriteFile(path, input);
  if (absl::StatusOr<GgufFile> file = GgufFile::Open(path); file.ok())
    for (const GgufTensor &tensor : file->tensors())
      if (tensor.bytes > 0 && tensor.elements() < 1 << 16) {
        std::vector<float> values(tensor.elements());
        fuzz::Require(file->Read(tensor, 0, tensor.elements(), values.data()).ok(),
                      "a tensor of the header is in the file");
      }
  absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::Open(path, "gpt-2");
  if (!tokenizer.ok())
    return 0;
  for (const char *text : kTexts)
    TryText(*tokenizer, text);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
