//===- open_data.cpp - Opens the sources of batches -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/conversation.h"
#include "runtime/data/data.h"
#include "runtime/data/tokenizer_print.h"
#include "runtime/tokenizer/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <memory>
#include <vector>
#include <utility>

namespace boa {

// Files of a source that a commit names, so that one that changed can be named.
static constexpr size_t kMostNamed = 64;

static absl::Status CheckMask(const DataOptions &options) {
  if (options.objective != Objective::masked)
    return absl::OkStatus();
  if (options.mask_token < 0 || options.mask_token >= options.vocab)
    return absl::InvalidArgumentError(absl::StrCat(
        "mask token ", options.mask_token, " is outside the vocabulary of ", options.vocab));
  if (!(options.mask_probability > 0 && options.mask_probability <= 1))
    return absl::InvalidArgumentError(absl::StrCat("mask probability ", options.mask_probability,
                                                   " is not above 0 and at most 1"));
  return absl::OkStatus();
}

absl::StatusOr<Data> Data::Open(const DataOptions &options) {
  if (absl::Status status = CheckMask(options); !status.ok())
    return status;
  Data data;
  data.options = options;
  if (options.cache.date.empty())
    data.options.cache.date = Today(); // for all sources, also at midnight
  const bool bytes = TokensAreBytes(options.data), own = !options.validate.empty();
  if (own && TokensAreBytes(options.validate) != bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("`data` is ", bytes ? "a text" : "tokens", ", but `validate` is ",
                     bytes ? "tokens" : "a text", ": their tokens mean different things"));
  data.mask = {options.mask_probability, options.mask_token,
               bytes ? std::min<int64_t>(options.vocab, 256) : options.vocab};
  std::vector<int64_t> shares;
  if (absl::Status status = data.OpenParts("data", options.data, data.training, shares);
      !status.ok())
    return status;
  data.mixture = Mixture(shares, uint64_t(options.seed));
  data.validation = data.training;
  if (own)
    if (absl::Status status = data.OpenParts("validate", options.validate, data.validation, shares);
        !status.ok())
      return status;
  if (!data.special.empty())
    data.NoteSpecial();
  for (Part &part : data.training)
    part.windows = own ? part.source->windows() : part.source->training_windows();
  for (Part &part : data.validation) {
    part.first = own ? 0 : part.source->first_validation_window();
    part.windows = std::max<int64_t>(part.source->windows() - part.first, 0);
  }
  for (const auto *parts : {&data.training, &data.validation})
    for (const Part &part : *parts)
      if (absl::Status status = data.CheckPart(part, parts == &data.validation); !status.ok())
        return status;
  // Without the seed: runs with different seeds are compared on the same sequences.
  data.validated_of = Mixture(shares, 0).Count(options.asked());
  for (size_t i = 0; i < data.validation.size(); ++i)
    data.validated_of[i] = std::min(data.validated_of[i], data.WholeSequences(data.validation[i]));
  data.Continue(0, {});
  return data;
}

bool Data::TellsDocuments() const {
  return std::any_of(training.begin(), training.end(),
                     [](const Part &part) { return part.source->TellsDocuments(); });
}

absl::Status Data::OpenParts(const std::string &setting, const std::string &text,
                             std::vector<Part> &parts, std::vector<int64_t> &shares) {
  std::string error;
  const std::vector<DataSource> sources = ParseSources(text, error);
  if (sources.empty())
    return absl::InvalidArgumentError(absl::StrCat(setting, ": `", text, "`: ", error));
  shares = WholeShares(sources);
  std::string all;
  parts.clear();
  for (const DataSource &source : sources) {
    Part part;
    part.share = shares[parts.size()];
    if (absl::Status status = OpenPart(source, part); !status.ok())
      return status;
    for (const Part &other : parts)
      if (other.identity == part.identity)
        return absl::InvalidArgumentError(
            absl::StrCat("a mix has `", other.source->name(), "` and `", part.source->name(),
                         "`, which have the same contents: one share for both is needed"));
    absl::StrAppend(&all, parts.empty() ? "" : ", ",
                    sources.size() > 1 ? absl::StrCat(source.share, " of ") : "", part.identity,
                    source.end < 0 ? "" : absl::StrCat(" whose documents end with ", source.end));
    parts.push_back(std::move(part));
  }
  settings[setting] = all;
  return absl::OkStatus();
}

absl::Status Data::OpenPart(const DataSource &source, Part &part) {
  if (source.end >= 0 && options.objective == Objective::masked && !options.document_mask)
    return absl::InvalidArgumentError(
        absl::StrCat(FormatSource(source), ": masked tokens are predicted where they stand, so "
                                           "`end` would change nothing; leave it out"));
  if (absl::Status status = TakeTokenizer(source); !status.ok())
    return status;
  if (absl::Status status = TakeSpecial(source); !status.ok())
    return status;
  absl::StatusOr<std::unique_ptr<Source>> opened =
      OpenSource(source, {options.vocab, options.context, options.objective == Objective::masked,
                          options.cache});
  if (!opened.ok())
    return opened.status();
  part.source = *std::move(opened);
  part.packed = source.packed;
  part.kind = source.kind;
  absl::StatusOr<std::vector<FilePrint>> files = part.source->Fingerprints();
  if (!files.ok())
    return files.status();
  std::string print = absl::StrFormat("with fingerprint %016x", Combine(*files));
  if (!source.packed)
    absl::StrAppend(&print, ", each padded to a multiple of ", options.context);
  const char *what = source.kind == SourceKind::bytes  ? "text "
                     : source.kind == SourceKind::text ? "tokens of texts "
                     : source.kind == SourceKind::chat ? "tokens of conversations "
                                                       : "tokens ";
  part.identity = absl::StrCat(what, print);
  if (source.kind == SourceKind::bytes)
    return absl::OkStatus();
  settings[absl::StrCat(kCallOf, source.files)] = FormatSource(source);
  settings[absl::StrCat(kFilesOf, source.files)] =
      absl::StrCat(part.source->Describe(), " ", print);
  files->resize(std::min(files->size(), kMostNamed));
  for (const FilePrint &file : *files)
    settings[absl::StrCat(kFileOf, source.files, ": ", file.path)] =
        absl::StrFormat("%016x", file.hash);
  return absl::OkStatus();
}

/// Tokens of two tokenizers mean different things.
absl::Status Data::TakeTokenizer(const DataSource &source) {
  if (source.tokenizer.empty())
    return absl::OkStatus();
  if (source.kind == SourceKind::chat && options.objective == Objective::masked)
    return absl::InvalidArgumentError(absl::StrCat(
        FormatSource(source), ": masked tokens are chosen at random, and conversations "
                              "say themselves what is learnt; use objective = "
                              "next_token"));
  if (!source.packed && options.objective == Objective::masked)
    return absl::InvalidArgumentError(absl::StrCat(
        FormatSource(source), ": masked tokens are chosen among all, so padding would be learnt; "
                              "leave out packed = false"));
  absl::StatusOr<std::string> print = PrintOfTokenizer(source.tokenizer);
  if (!print.ok())
    return print.status();
  if (tokenizer.empty()) {
    tokenizer = source.tokenizer;
    tokenizer_print = *print;
  }
  if (*print != tokenizer_print)
    return absl::InvalidArgumentError(
        absl::StrCat("`", tokenizer, "` and `", source.tokenizer,
                     "` are different tokenizers, whose tokens mean different things: the data "
                     "need one"));
  settings[absl::StrCat(kTokenizerOf, source.files)] = *print;
  absl::StatusOr<TemplatePrint> form = PrintOfTemplate(source, options.cache);
  if (!form.ok())
    return form.status();
  if (!form->date.empty())
    settings[kTemplateDate] = form->date;
  if (!source.packed)
    settings[absl::StrCat(kPaddingOf, source.files)] = absl::StrCat(options.context);
  return absl::OkStatus();
}

/// The tokens that say nothing which could be learnt.
absl::Status Data::TakeSpecial(const DataSource &source) {
  if (options.objective != Objective::masked || source.kind == SourceKind::bytes)
    return absl::OkStatus();
  special.resize(size_t(options.vocab));
  if (source.end >= 0 && source.end < options.vocab)
    special[size_t(source.end)] = true;
  if (source.tokenizer.empty())
    return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<const Tokenizer>> opened = Tokenizer::Open(source.tokenizer);
  if (!opened.ok())
    return opened.status();
  const auto take = [&](int64_t token, bool is_special) {
    if (is_special && token >= 0 && token < options.vocab)
      special[size_t(token)] = true;
  };
  for (int64_t token = 0; token < (*opened)->size(); ++token)
    take(token, (*opened)->IsSpecial(int32_t(token)));
  // Some files do not mark what they put around a text.
  std::vector<int32_t> around, empty;
  EncodeOptions encode;
  absl::Status status = Encoder(*opened).Encode("", encode, around);
  encode.surround = false;
  if (status.ok())
    status = Encoder(*opened).Encode("", encode, empty);
  around.insert(around.end(), {(*opened)->bos(), (*opened)->eos()});
  for (int32_t token : around)
    take(token, std::find(empty.begin(), empty.end(), token) == empty.end());
  return status;
}

/// Notes what the sources say, since another mask is a setting of its own.
void Data::NoteSpecial() {
  std::string all;
  for (bool is_special : special)
    all += is_special ? '1' : '0';
  settings[kSpecialTokens] =
      absl::StrCat(std::count(all.begin(), all.end(), '1'), " with fingerprint ", KeyOf(all));
  special[size_t(options.mask_token)] = true;
}

absl::Status Data::CheckPart(const Part &part, bool validates) const {
  if (part.windows > 0 || (validates && !options.evaluates()))
    return absl::OkStatus();
  const Source &source = *part.source;
  const int64_t size = source.size(), context = options.context;
  const std::string begin = absl::StrCat("`", source.name(), "` has ", size, " ", source.unit());
  if (!source.overlaps()) {
    const int64_t need = options.objective == Objective::masked ? context : 2;
    if (size < need)
      return absl::InvalidArgumentError(absl::StrCat(
          begin, ", but ", need, " are the fewest", need == 2 ? "" : " of a sequence",
          ": more tokens", need == 2 ? " are" : " or a smaller context is", " needed"));
    if (source.windows() == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("`", source.name(), "`: none of its sequences of ", context,
                       " tokens has a target: more conversations or a smaller context are needed"));
    return absl::InvalidArgumentError(absl::StrCat(
        begin, " in ", source.windows(), source.windows() == 1 ? " sequence" : " sequences",
        ", of which the last tenth, for validation, is none: more tokens, a smaller context, "
        "`validate` or no evaluation is needed"));
  }
  const int64_t held = size - source.first_validation_window();
  const std::string takes =
      absl::StrCat(", but one sequence takes ", context + 1, ": a longer text");
  if (!options.validate.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(begin, takes, " or a smaller context is needed"));
  if (!validates)
    return absl::InvalidArgumentError(absl::StrCat(begin, ", ", size - held,
                                                   " of them for training", takes,
                                                   " or a smaller context is needed"));
  return absl::InvalidArgumentError(absl::StrCat(begin, ", the last tenth of them, ", held,
                                                 ", for validation", takes,
                                                 ", a smaller context or no evaluation is needed"));
}

} // namespace boa
