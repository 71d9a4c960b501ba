//===- ImportData.cpp - The data that an import writes into a spec --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/models/ImportData.h"

#include "runtime/abi/sources.h"
#include "runtime/data/tokenized.h"
#include "runtime/view/progress_line.h"
#include "runtime/weights/folder_files.h"
#include "tools/models/SpecText.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <filesystem>
#include <vector>

namespace boa {
namespace {

/// A context is a multiple of this number: kernels are faster then.
constexpr int64_t kRound = 64;
/// A model that is asked something needs room for the question, too.
constexpr int64_t kLeastContext = 256;
constexpr double kFits = 0.95;

/// A path of the command line as a spec writes it: relative to the folder of the spec.
std::string besideSpec(const std::string &path, const std::string &spec) {
  if (std::filesystem::path(path).is_absolute())
    return path;
  std::error_code error;
  const auto whole = [&](const std::string &of) {
    return std::filesystem::absolute(of, error).lexically_normal();
  };
  return whole(path).lexically_proximate(whole(spec).parent_path()).string();
}

/// The tokenizer of a folder or GGUF file; "": there is none.
std::string findTokenizer(const std::string &folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return folder;
  for (const char *name : {"tokenizer.json", "tokenizer.model"})
    if (std::string path = absl::StrCat(folder, "/", name); std::filesystem::exists(path, error))
      return path;
  return "";
}

/// Whether a file holds records of JSON, by its name.
bool isRecords(const std::string &path) {
  return absl::EndsWith(path, ".jsonl") || absl::EndsWith(path, ".ndjson") ||
         absl::EndsWith(path, ".json");
}

DataSource sourceOf(const std::string &path, const std::string &tokenizer, int64_t vocab) {
  DataSource source;
  source.files = path;
  if (absl::EndsWith(path, ".bin") || absl::EndsWith(path, ".npy")) {
    source.kind = SourceKind::tokens;
    // Numbers without a header are of 16 bits unless a spec says more.
    source.type = absl::EndsWith(path, ".bin") && vocab > 65536 ? "uint32" : "";
    return source;
  }
  source.kind = isRecords(path) ? SourceKind::chat : SourceKind::text;
  source.tokenizer = tokenizer;
  return source;
}

/// Tokens that are enough for 95% of the documents. Texts may be as long as books: for texts, at
/// most the usual context of the model.
int64_t contextFor(const ImportedData &data, const ModelConfig &config) {
  const int64_t usual = defaultContext(config);
  if (data.lengths.size() == 0)
    return usual;
  int64_t most = data.conversations ? config.Number("positions") : usual;
  if (const int64_t window = config.window_of_some(); window > 0)
    most = std::min(most, window);
  const int64_t need = std::max(data.lengths.Quantile(kFits), kLeastContext);
  return std::min((need + kRound - 1) / kRound * kRound, most);
}

} // namespace

absl::StatusOr<ImportedData> readImportedData(const std::string &data, const std::string &folder,
                                              const std::string &spec, const ModelConfig &config) {
  const std::string tokenizer = findTokenizer(folder);
  std::string error;
  std::vector<DataSource> sources;
  if (IsSourceCall(data))
    sources = ParseSources(data, error);
  else
    sources = {sourceOf(data, tokenizer, config.Number("vocab"))};
  if (sources.empty())
    return absl::InvalidArgumentError(absl::StrCat("--data ", data, ": ", error));

  ImportedData imported;
  imported.hasEpochs = sources.size() == 1;
  ProgressLine line("measures documents: ");
  SourceOptions options;
  options.vocab = config.Number("vocab");
  options.context = config.Number("positions");
  options.cache.show = [&](int64_t bytes, int64_t of) { line.Show(bytes, of); };
  std::vector<DataSource> written = sources, checked = sources;
  for (size_t i = 0; i < sources.size(); ++i) {
    const DataSource &source = sources[i];
    written[i].files = checked[i].files = besideSpec(source.files, spec);
    if (source.has_template_file())
      written[i].form = checked[i].form = besideSpec(source.form, spec);
    if (source.is_tokenized() && source.tokenizer.empty())
      return absl::NotFoundError(
          absl::StrCat("--data ", data, ": `", folder,
                       "` has no tokenizer.json and no tokenizer.model, which make tokens of it"));
    if (source.tokenizer == tokenizer && !tokenizer.empty()) {
      // Of a GGUF file, an import makes a tokenizer.json.
      const bool isModel = std::filesystem::path(tokenizer).filename() == "tokenizer.model";
      written[i].tokenizer =
          absl::StrCat(std::filesystem::path(FolderBeside(spec)).filename().string(),
                       isModel ? "/tokenizer.model" : "/tokenizer.json");
      checked[i].tokenizer = std::filesystem::absolute(tokenizer).lexically_normal().string();
    } else if (!source.tokenizer.empty()) {
      written[i].tokenizer = checked[i].tokenizer = besideSpec(source.tokenizer, spec);
    }
    if (!source.is_tokenized())
      continue;
    imported.conversations |= source.kind == SourceKind::chat;
    if (absl::Status status = MeasureTokenized(
            source, options, [&](int64_t tokens) { imported.lengths.Add(tokens); });
        !status.ok())
      return status;
  }
  imported.call = FormatSources(written);
  imported.checked = FormatSources(checked);
  imported.context = contextFor(imported, config);
  return imported;
}

std::string describeFit(const ImportedData &data, int64_t context) {
  const int64_t all = data.lengths.size(), longer = data.lengths.Above(context);
  if (all == 0)
    return "";
  const int64_t least = data.lengths.Quantile(0), most = data.lengths.Quantile(1);
  std::string text =
      absl::StrCat(all, all == 1 ? " document of " : " documents of ",
                   least == most ? "" : absl::StrCat(least, " to "), most, " tokens; ");
  if (longer == 0)
    return text + "none is longer than the context";
  absl::StrAppendFormat(&text,
                        "%d (%.3g%%) %s longer than the context, and %s on in the next "
                        "sequence",
                        longer, 100 * double(longer) / double(all), longer == 1 ? "is" : "are",
                        longer == 1 ? "goes" : "go");
  return text;
}

} // namespace boa
