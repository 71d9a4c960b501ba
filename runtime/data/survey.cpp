//===- survey.cpp - Counts of what a model will read ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/survey.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace boa {

int64_t Counts::Quantile(double share) const {
  const auto rank = int64_t(std::ceil(share * double(all)));
  int64_t before = 0;
  for (const auto &[number, count] : of) {
    before += count;
    if (before >= rank)
      return number;
  }
  return of.rbegin()->first;
}

int64_t Counts::Above(int64_t number) const {
  int64_t count = 0;
  for (auto it = of.upper_bound(number); it != of.end(); ++it)
    count += it->second;
  return count;
}

namespace {

/// Follows the tokens of a source from the first to the last.
class Surveyor {
public:
  Surveyor(SourceSurvey &survey, int64_t context, bool masked)
      : survey(survey), context(context), masked(masked) {}

  /// The next window. Returns its targets.
  int64_t Take(const Data::Sequence &sequence) {
    const Window &window = sequence.window;
    const std::set<int64_t> begins(window.begins.begin(), window.begins.end());
    const int64_t seen = next;
    int64_t targets = 0;
    for (int64_t p = 0; p < context; ++p) {
      // A masked token is a target at its own position, any other at the one before.
      const int64_t token = window.first + p + !masked;
      for (; next <= token; ++next) {
        const int64_t position = next - window.first;
        if (position == window.content)
          EndDocument(next);
        else if (begins.count(position) > 0)
          BeginDocument(next);
      }
      const bool is_target = sequence.targets[size_t(p)] >= 0;
      targets += is_target;
      document_targets += is_target;
      if ((masked || is_target) && token >= seen)
        is_split |= number != document / context;
    }
    ++number;
    return targets;
  }

  void Finish() { EndDocument(survey.part->source->size()); }

private:
  void BeginDocument(int64_t token) {
    EndDocument(token);
    document = token;
  }
  void EndDocument(int64_t token) {
    if (survey.tells_documents && document >= 0 && token > document) {
      survey.lengths.Add(token - document);
      survey.split += is_split;
      survey.untargeted += document_targets == 0 && !masked; // those are drawn at random
    }
    document = -1;
    document_targets = 0;
    is_split = false;
  }

  SourceSurvey &survey;
  const int64_t context;
  const bool masked;
  int64_t number = 0;           // of the window
  int64_t next = 0;             // token
  int64_t document = 0;         // its first token; negative: padding
  int64_t document_targets = 0; // until now
  bool is_split = false;
};

absl::Status Survey(const Data &data, const DataOptions &options, const SurveyOptions &following,
                    const Data::Part *validation, SourceSurvey &survey) {
  const Source &source = *survey.part->source;
  const bool masked = options.objective == Objective::masked;
  // A text is one document.
  survey.tells_documents = source.TellsDocuments() || source.overlaps();
  survey.tokens = source.size();
  Surveyor surveyor(survey, options.context, masked);
  Data::Sequence sequence;
  const int64_t all = source.all_windows();
  for (int64_t window = 0; window < all; ++window) {
    if (following.stops())
      return absl::CancelledError("interrupted; nothing was changed");
    if (absl::Status status = data.ReadAny(*survey.part, window, sequence); !status.ok())
      return status;
    const int64_t targets = surveyor.Take(sequence);
    const int64_t padding = std::max<int64_t>(options.context - sequence.window.content, 0);
    // Of documents that are not packed, padding stands in the source.
    survey.tokens -= survey.part->packed ? 0 : padding;
    survey.targets += targets;
    following.show(window + 1, all);
    if (source.LeavesOut(window)) {
      ++survey.left_out;
      continue;
    }
    const int64_t place = survey.sequences++;
    survey.padding +=
        source.overlaps() ? 0 : padding; // sequences of a text begin where it has room
    const auto add = [&](const Data::Part &part, SourceSurvey::Use &use) {
      const bool is_of = place >= part.first && place < part.first + part.windows;
      use.sequences += is_of;
      use.targets += is_of ? targets : 0;
    };
    if (survey.trains)
      add(*survey.part, survey.to_train);
    if (validation)
      add(*validation, survey.to_validate);
  }
  surveyor.Finish();
  // The sequences of a text overlap: those that an epoch takes.
  const auto take = [&](const Data::Part &part, SourceSurvey::Use &use) {
    const double sequences = data.SequencesOfEpoch(part);
    const double of_each = masked ? double(survey.targets) / double(std::max<int64_t>(all, 1))
                                  : double(options.context);
    use = {int64_t(std::ceil(sequences)), std::llround(sequences * of_each)};
  };
  if (source.overlaps() && survey.trains)
    take(*survey.part, survey.to_train);
  if (source.overlaps() && validation)
    take(*validation, survey.to_validate);
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::vector<SourceSurvey>> SurveyData(const Data &data, const DataOptions &options,
                                                     const SurveyOptions &following) {
  std::vector<SourceSurvey> surveys;
  for (const Data::Part &part : data.ToTrain()) {
    surveys.emplace_back().part = &part;
    surveys.back().trains = true;
  }
  std::vector<const Data::Part *> validation(surveys.size());
  for (const Data::Part &part : data.ToValidate()) {
    const auto same = std::find_if(surveys.begin(), surveys.end(), [&](const SourceSurvey &other) {
      return other.part->source == part.source;
    });
    const auto at = size_t(same - surveys.begin());
    if (same == surveys.end()) {
      surveys.emplace_back().part = &part;
      validation.push_back(nullptr);
    }
    surveys[at].validates = true;
    validation[at] = &part;
  }
  for (size_t i = 0; i < surveys.size(); ++i)
    if (absl::Status status = Survey(data, options, following, validation[i], surveys[i]);
        !status.ok())
      return status;
  return surveys;
}

} // namespace boa
