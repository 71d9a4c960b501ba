//===- describe_data.cpp - What a training will read ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/describe_data.h"

#include "runtime/data/survey.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/printable.h"
#include "runtime/support/units.h"
#include "runtime/trainer/opening.h"
#include "runtime/trainer/sequence_text.h"
#include "runtime/view/progress_line.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

namespace boa {
namespace {

using Json = nlohmann::ordered_json;

constexpr struct {
  const char *key, *name;
  double share;
} kQuantiles[] = {{"min", "min", 0},    {"p50", "50%", 0.5},  {"p90", "90%", 0.9},
                  {"p95", "95%", 0.95}, {"p99", "99%", 0.99}, {"max", "max", 1}};

/// What was found, to be written as text or as JSON.
struct Found {
  const TrainSettings &train;
  const DataOptions &options;
  const Data &data;
  std::vector<SourceSurvey> surveys;
  std::vector<Data::Sequence> first;
  std::vector<std::string> texts; // of them
  int64_t steps = 0;

  int64_t shares() const {
    int64_t all = 0;
    for (const Data::Part &part : data.ToTrain())
      all += part.share;
    return all;
  }
  /// The steps in which a source is read once, as a number with a fraction.
  double StepsOfEpoch(const SourceSurvey &survey) const {
    return data.SequencesOfEpoch(*survey.part) * double(shares()) /
           double(survey.part->share * options.batch());
  }
  bool is_mix() const { return data.ToTrain().size() > 1; }
  /// Whether the spec says epochs, which a mix has not.
  bool lacks_steps() const { return is_mix() && train.epochs > 0; }
  /// Of the training; of no mix.
  double epochs() const { return double(steps) / StepsOfEpoch(surveys[0]); }
};

std::string KindOf(const Data::Part &part) {
  return part.kind == SourceKind::bytes ? "bytes" : CallOf(part.kind);
}

std::string Percent(int64_t part, int64_t of) {
  return absl::StrFormat("%.3g%%", of > 0 ? 100 * double(part) / double(of) : 0);
}

std::string Plural(int64_t count, const std::string &of) {
  return absl::StrCat(count, " ", of, count == 1 ? "" : "s");
}

//===----------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------===//

/// The lines of one source.
class SourceText {
public:
  SourceText(const Found &found, const SourceSurvey &survey)
      : found(found), survey(survey), part(*survey.part), context(found.options.context) {}

  std::string Write() {
    text = absl::StrCat(part.source->name(), "\n");
    Line("documents", Documents());
    Line("tokens", absl::StrCat(survey.tokens, ", ", survey.targets, " of them targets (",
                                Percent(survey.targets, survey.tokens), ")"));
    if (survey.tells_documents && survey.lengths.size() > 0)
      Line("lengths", Lengths());
    Line("context", Fit());
    Line("", Fate());
    Line("sequences", Sequences());
    if (survey.padding > 0)
      Line("padding", absl::StrCat(survey.padding, " positions, ",
                                   Percent(survey.padding, survey.sequences * context),
                                   " of all: they cost as much time as tokens do"));
    if (survey.trains)
      Line("epoch",
           absl::StrFormat("%.6g steps of %s%s", std::ceil(found.StepsOfEpoch(survey) * 100) / 100,
                           Plural(found.options.batch(), "sequence"),
                           found.is_mix()
                               ? absl::StrFormat(", of which %.3g%% are from here",
                                                 100 * double(part.share) / double(found.shares()))
                               : ""));
    return std::move(text);
  }

private:
  void Line(const char *name, const std::string &says) {
    if (!says.empty())
      absl::StrAppendFormat(&text, "  %-10s %s\n", name, says);
  }

  std::string Documents() const {
    if (!survey.tells_documents)
      return "nothing tells where they begin; tokens(..., end = N) or NAME.idx would";
    if (part.kind == SourceKind::bytes)
      return "1, whose bytes are tokens";
    return absl::StrCat(Plural(survey.lengths.size(), "document"),
                        survey.untargeted > 0
                            ? absl::StrCat(", ", survey.untargeted, " of them without a target")
                            : "");
  }

  std::string Lengths() const {
    std::string all;
    for (const auto &quantile : kQuantiles)
      absl::StrAppend(&all, all.empty() ? "" : ", ", quantile.name, " ",
                      survey.lengths.Quantile(quantile.share));
    return all;
  }

  std::string Fit() const {
    if (!survey.tells_documents)
      return absl::StrCat(context);
    const int64_t longer = survey.lengths.Above(context), all = survey.lengths.size();
    if (longer == 0)
      return absl::StrCat(context, ": no document is longer");
    return absl::StrCat(context, ": ", Plural(longer, "document"), longer == 1 ? " is" : " are",
                        " longer (", Percent(longer, all), ")");
  }

  /// What becomes of documents at the end of a sequence.
  std::string Fate() const {
    if (part.kind == SourceKind::bytes)
      return "a sequence begins at any byte; nothing is cut off";
    if (!survey.tells_documents)
      return "a sequence ends anywhere, and the next one goes on there; nothing is cut off";
    const std::string split = survey.split == 0
                                  ? "none is split"
                                  : Plural(survey.split, "document") +
                                        (survey.split == 1 ? " is split so" : " are split so");
    return absl::StrCat(part.packed
                            ? "packed: at the end of a sequence a document goes on in the next one"
                            : "not packed: a longer document goes on in the next sequence",
                        ",\n", std::string(13, ' '), "which does not see the part before; ", split,
                        ", nothing is cut off");
  }

  std::string Sequences() const {
    const auto of = [](const SourceSurvey::Use &use, const char *purpose) {
      return absl::StrCat(use.sequences, " to ", purpose, " (", Plural(use.targets, "target"), ")");
    };
    std::string all = survey.trains ? of(survey.to_train, "train on") : "";
    if (survey.validates)
      absl::StrAppend(&all, all.empty() ? "" : ", ", of(survey.to_validate, "validate"));
    if (survey.left_out > 0)
      absl::StrAppend(&all, "; ", survey.left_out, " without a target ",
                      survey.left_out == 1 ? "is" : "are", " left out");
    return all;
  }

  const Found &found;
  const SourceSurvey &survey;
  const Data::Part &part;
  const int64_t context;
  std::string text;
};

std::string StepsAsText(const Found &found) {
  if (found.lacks_steps())
    return "training: a mix has no epochs, so a number of steps is needed\n";
  TrainSettings counted = found.train;
  counted.steps = found.steps;
  std::string text = absl::StrCat("training: ", DescribeSteps(counted), " of ",
                                  Plural(found.options.batch(), "sequence"));
  if (counted.epochs == 0 && !found.is_mix())
    absl::StrAppendFormat(&text, ", %.3g epochs", found.epochs());
  return text + "\n";
}

std::string FirstAsText(const Found &found, bool colours) {
  std::string text;
  for (size_t i = 0; i < found.first.size(); ++i) {
    const Data::Sequence &sequence = found.first[i];
    const auto targets = std::count_if(sequence.targets.begin(), sequence.targets.end(),
                                       [](int32_t target) { return target >= 0; });
    absl::StrAppend(&text, "\nsequence ", i + 1, " of step 1, from ",
                    Printable(sequence.part->source->name()), "; ", Plural(targets, "target"), ", ",
                    colours ? "coloured" : "in brackets", ":\n", found.texts[i]);
  }
  return text;
}

/// Of Data::Describe, whose other lines are here already.
std::string NotesOf(const Data &data) {
  std::string notes;
  for (absl::string_view line : absl::StrSplit(data.Describe(), '\n'))
    if (absl::StartsWith(line, "note: "))
      absl::StrAppend(&notes, line, "\n");
  return notes;
}

//===----------------------------------------------------------------------===//
// As JSON
//===----------------------------------------------------------------------===//

Json JsonOf(const Found &found, const SourceSurvey &survey) {
  const Data::Part &part = *survey.part;
  const bool tells = survey.tells_documents;
  const auto if_told = [&](int64_t count) { return tells ? Json(count) : Json(); };
  Json lengths;
  for (const auto &quantile : kQuantiles)
    if (survey.lengths.size() > 0)
      lengths[quantile.key] = survey.lengths.Quantile(quantile.share);
  const auto use = [](const SourceSurvey::Use &of) {
    return Json{{"sequences", of.sequences}, {"targets", of.targets}};
  };
  Json trains, validates;
  if (survey.trains) {
    trains = use(survey.to_train);
    trains["steps_of_epoch"] = found.StepsOfEpoch(survey);
  }
  if (survey.validates)
    validates = use(survey.to_validate);
  return {{"source", part.source->name()},
          {"kind", KindOf(part)},
          {"share", survey.trains ? double(part.share) / double(found.shares()) : 0},
          {"packed", part.packed},
          {"documents", if_told(survey.lengths.size())},
          {"lengths", lengths},
          {"longer", if_told(survey.lengths.Above(found.options.context))},
          {"split", if_told(survey.split)},
          {"untargeted", if_told(survey.untargeted)},
          {"tokens", survey.tokens},
          {"targets", survey.targets},
          {"sequences", survey.sequences},
          {"left_out", survey.left_out},
          {"padding", survey.padding},
          {"train", trains},
          {"validate", validates}};
}

Json JsonOf(const Found &found) {
  Json sources = Json::array(), first = Json::array();
  for (const SourceSurvey &survey : found.surveys)
    sources.push_back(JsonOf(found, survey));
  for (size_t i = 0; i < found.first.size(); ++i)
    first.push_back(Json{{"source", found.first[i].part->source->name()},
                         {"tokens", found.first[i].tokens},
                         {"targets", found.first[i].targets},
                         {"text", found.texts[i]}});
  return {{"context", found.options.context},
          {"batch", found.options.batch()},
          {"objective", WordOf(found.options.objective)},
          {"document_mask", found.options.document_mask},
          {"steps", found.lacks_steps() ? Json() : Json(found.steps)},
          {"epochs", found.is_mix() ? Json() : Json(found.epochs())},
          {"sources", sources},
          {"first", first}};
}

/// The tokenizer that can show tokens of a source; null: none is known.
absl::StatusOr<std::shared_ptr<const Tokenizer>> TokenizerOf(const DataOptions &data,
                                                             const std::string &given) {
  std::string path = given, ignored;
  for (const DataSource &source : ParseSources(data.data, ignored))
    if (path.empty())
      path = source.tokenizer;
  if (path.empty())
    return nullptr;
  return Tokenizer::Open(path);
}

} // namespace

absl::Status DescribeData(const TrainSettings &train, DataOptions options,
                          const DescribeDataOptions &describe, std::ostream &out) {
  const auto say = [](const std::string &text) {
    std::fprintf(stderr, "%s\n", Printable(text).c_str());
  };
  std::optional<ProgressLine> line("makes tokens: ");
  options.cache.say = say;
  options.cache.show = [&](int64_t bytes, int64_t of) { line->Show(bytes, of); };
  options.cache.stops = [] { return Interrupted(); };
  absl::StatusOr<Data> data = Data::Open(options);
  if (absl::IsCancelled(data.status()))
    return IfInterrupted(Interruption(), std::string(data.status().message()));
  if (!data.ok())
    return WithPathHint(data.status(), /*of_spec=*/true);
  const absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer =
      TokenizerOf(options, describe.tokenizer);
  if (!tokenizer.ok())
    return tokenizer.status();

  Found found{train, options, *data, {}, {}, {}, train.steps};
  if (train.epochs > 0 && !found.is_mix()) {
    absl::StatusOr<int64_t> steps = data->StepOfEpochs(train.epochs);
    if (!steps.ok())
      return steps.status();
    found.steps = *steps;
  }
  line.emplace("reads sequences: ", FormatCount);
  SurveyOptions following;
  following.show = [&](int64_t done, int64_t of) { line->Show(done, of); };
  following.stops = [] { return Interrupted(); };
  absl::StatusOr<std::vector<SourceSurvey>> surveys = SurveyData(*data, options, following);
  line.reset();
  if (absl::IsCancelled(surveys.status()))
    return IfInterrupted(Interruption(), "interrupted; nothing was changed");
  if (!surveys.ok())
    return surveys.status();
  found.surveys = *std::move(surveys);

  const bool masked = options.objective == Objective::masked;
  const Marks marks = describe.colours && !describe.json ? Marks::colours : Marks::brackets;
  for (int64_t i = 0; i < std::min(describe.sequences, options.batch()); ++i) {
    absl::StatusOr<Data::Sequence> sequence = data->ReadTraining(/*step=*/1, i);
    if (!sequence.ok())
      return sequence.status();
    found.texts.push_back(TextOfSequence(*sequence, masked, *tokenizer, marks));
    found.first.push_back(*std::move(sequence));
  }
  if (describe.json) {
    out << JsonOf(found).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  std::string text;
  for (const SourceSurvey &survey : found.surveys)
    absl::StrAppend(&text, Printable(SourceText(found, survey).Write()));
  out << text << StepsAsText(found) << NotesOf(*data) << FirstAsText(found, describe.colours);
  return absl::OkStatus();
}

} // namespace boa
