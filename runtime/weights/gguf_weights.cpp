//===- gguf_weights.cpp - Tensors of a GGUF file --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/gguf_weights.h"

#include "runtime/weights/family.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <utility>

namespace boa {
namespace {

/// The name that a tensor has in the folder; null: it is no weight.
const char *NameOf(const GgufForm &form, absl::string_view here) {
  for (const GgufForm::Name &name : form.tensors)
    if (here == name.here)
      return name.there;
  return nullptr;
}

/// "blk.3.attn_q.weight" in parts: the layer, or -1; "attn_q"; ".weight".
struct SplitName {
  int64_t layer = -1;
  absl::string_view stem, kind;
};
SplitName SplitNameOf(absl::string_view name) {
  SplitName parts;
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "blk.")) {
    const size_t dot = rest.find('.');
    if (dot == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, dot), &parts.layer) ||
        parts.layer < 0 || absl::StrCat(parts.layer) != rest.substr(0, dot))
      return {};
    rest.remove_prefix(dot + 1);
  }
  for (absl::string_view kind : {".weight", ".bias"})
    if (absl::ConsumeSuffix(&rest, kind)) {
      parts.stem = rest;
      parts.kind = kind;
    }
  return parts;
}

bool CanBeRead(const std::string &type) {
  for (const char *known : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"})
    if (type == known)
      return true;
  return false;
}

} // namespace

bool IsGgufName(const std::string &path) { return absl::EndsWithIgnoreCase(path, ".gguf"); }

absl::StatusOr<GgufWeights> GgufWeights::Open(const std::string &path) {
  absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  if (!file.ok())
    return file.status();
  GgufWeights weights(*std::move(file));
  absl::Status status = weights.Name(weights.file.Text("general.architecture"));
  if (!status.ok())
    return status;
  return weights;
}

absl::Status GgufWeights::Name(const std::string &architecture) {
  const Family *family = FamilyOfGguf(architecture);
  if (!family)
    return absl::UnimplementedError(absl::StrCat("`", file.path(), "`: `general.architecture` is `",
                                                 architecture, "`: of GGUF files Boa reads ",
                                                 GgufArchitectures()));
  const GgufForm &form = family->gguf;
  if (file.Number("split.count", 1) != 1)
    return absl::UnimplementedError(absl::StrCat(
        "`", file.path(), "` is one of several parts: join them with `llama-gguf-split --merge`"));
  for (const GgufTensor &source : file.tensors()) {
    Tensor tensor;
    tensor.name = source.name;
    tensor.shape = source.shape;
    const bool native = source.type == "F32" || source.type == "F16" || source.type == "BF16";
    tensor.dtype = native || !CanBeRead(source.type) ? source.type : "F32";
    const SplitName parts = SplitNameOf(source.name);
    Layout layout = Layout::same;
    int64_t rows = 0;
    if (const char *there = NameOf(form, parts.stem)) {
      tensor.name = absl::StrCat(parts.layer < 0 ? "" : absl::StrCat(form.layers, parts.layer, "."),
                                 there, parts.kind);
      const bool is_q = parts.stem == "attn_q", is_k = parts.stem == "attn_k";
      if (form.paired && (is_q || is_k)) {
        const int64_t heads = file.Number(absl::StrCat(architecture, ".attention.head_count"), 0);
        const int64_t of_it =
            is_q ? heads
                 : file.Number(absl::StrCat(architecture, ".attention.head_count_kv"), heads);
        const int64_t out = tensor.shape.empty() ? 0 : tensor.shape[0];
        if (of_it <= 0 || out % of_it != 0 || out / of_it % 2 != 0)
          return absl::InvalidArgumentError(
              absl::StrCat("`", file.path(), "`: tensor `", source.name, "` has ", out,
                           " rows, which are not ", of_it, " heads of an even number"));
        layout = Layout::paired;
        rows = out / of_it;
      } else if (form.transposed && parts.layer >= 0 && tensor.shape.size() == 2) {
        layout = Layout::transposed;
        std::swap(tensor.shape[0], tensor.shape[1]);
      }
    }
    contents.push_back(std::move(tensor));
    layouts.push_back(layout);
    pair_rows.push_back(rows);
  }
  return absl::OkStatus();
}

/// Elements in the file's layout. Those of a quantised type come in whole blocks.
absl::Status GgufWeights::Copy(const GgufTensor &tensor, int64_t first, int64_t count,
                               float *values) const {
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % kGgufBlock != 0 || (first % kGgufBlock == 0 && count % kGgufBlock == 0))
    return file.Read(tensor, first, count, values); // no type of blocks has such rows
  const int64_t begin = first / kGgufBlock * kGgufBlock;
  const int64_t end = (first + count + kGgufBlock - 1) / kGgufBlock * kGgufBlock;
  std::vector<float> blocks(static_cast<size_t>(end - begin));
  absl::Status status = file.Read(tensor, begin, end - begin, blocks.data());
  std::copy_n(blocks.begin() + (first - begin), status.ok() ? count : 0, values);
  return status;
}

absl::Status GgufWeights::Read(size_t index, int64_t first, int64_t count, float *values) const {
  const GgufTensor &source = file.tensors()[index];
  const Tensor &tensor = contents[index];
  if (layouts[index] == Layout::same)
    return Copy(source, first, count, values);
  if (layouts[index] == Layout::transposed) {
    // Columns [begin, end) of each row of the file.
    const int64_t out = tensor.shape[1], in = tensor.shape[0];
    const int64_t begin = first / out, end = (first + count + out - 1) / out;
    std::vector<float> column(static_cast<size_t>(end - begin));
    for (int64_t o = 0; o < out; ++o) {
      if (absl::Status status = Copy(source, o * in + begin, end - begin, column.data());
          !status.ok())
        return status;
      for (int64_t i = begin; i < end; ++i)
        if (const int64_t at = i * out + o - first; at >= 0 && at < count)
          values[at] = column[static_cast<size_t>(i - begin)];
    }
    return absl::OkStatus();
  }
  const int64_t width = tensor.shape.size() < 2 ? 1 : tensor.elements() / tensor.shape[0];
  const int64_t head = pair_rows[index];
  while (count > 0) {
    const int64_t row = first / width, column = first % width;
    const int64_t part = std::min(count, width - column);
    const int64_t within = row % head, half = within / (head / 2), i = within % (head / 2);
    if (absl::Status status =
            Copy(source, (row - within + 2 * i + half) * width + column, part, values);
        !status.ok())
      return status;
    first += part;
    count -= part;
    values += part;
  }
  return absl::OkStatus();
}

} // namespace boa
