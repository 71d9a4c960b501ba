//===- commits.cpp - The commits of a state -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/commits.h"

#include "runtime/abi/sizes.h"
#include "runtime/state/sealed.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace boa {

std::optional<ChosenPlan> PlanOf(const CommitRecord &record) {
  auto block = record.extra.find(kPlanBlock), given = record.extra.find(kPlanGiven);
  if (block == record.extra.end() || given == record.extra.end())
    return std::nullopt;
  return ChosenPlan{block->second, given->second};
}

absl::Status CheckRecord(const CommitRecord &record) {
  size_t facts = 0, longest = 0;
  auto add = [&](const std::string &key, size_t value) {
    longest = std::max({longest, key.size(), value});
  };
  for (const auto *texts : {&record.extra, &record.environment}) {
    facts = std::max(facts, texts->size());
    for (const auto &[key, value] : *texts)
      add(key, value.size());
  }
  facts = std::max(facts, record.samples.size());
  bool counted = true;
  for (const auto &[source, count] : record.samples) {
    add(source, 0);
    counted &= count >= 0 && count <= kMostSamples;
  }
  if (facts <= kMostFacts && longest <= kMostText && record.plan.size() <= kMostPlan && counted)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "cannot commit step %d: its record has %d facts of up to %d bytes and a plan of %d bytes%s; "
      "a manifest can hold %d facts of %d bytes, and a plan of %d bytes",
      record.step, facts, longest, record.plan.size(),
      counted ? "" : ", and a number of samples out of range", kMostFacts, kMostText, kMostPlan));
}

absl::StatusOr<const SavedCommit *>
Commits::GoTo(std::optional<int64_t> at, const std::string &home, std::vector<std::string> &notes) {
  const std::vector<SavedCommit> &commits = kept.commits;
  if (commits.empty())
    return absl::NotFoundError(absl::StrCat(home, " holds no commit"));
  size_t chosen = commits.size() - 1;
  if (at) {
    std::vector<int64_t> steps;
    for (chosen = 0; chosen < commits.size() && commits[chosen].record.step != *at; ++chosen)
      steps.push_back(commits[chosen].record.step);
    if (chosen == commits.size())
      return absl::NotFoundError(
          absl::StrFormat("%s has no commit of step %d: it keeps those of %s", home, *at,
                          absl::StrJoin(steps, ", ")));
    for (size_t later = chosen + 1; later < commits.size(); ++later)
      notes.push_back(absl::StrFormat("the commit of step %d goes when the next is made",
                                      commits[later].record.step));
  }
  if (!commits[chosen].fault.ok())
    return commits[chosen].fault;
  present = commits[chosen].record;
  return &commits[chosen];
}

const SavedCommit *Commits::Present() const {
  for (const SavedCommit &commit : kept.commits)
    if (present && commit.record.step == present->step)
      return &commit;
  return nullptr;
}

const CommitRecord &Commits::record() const {
  static const CommitRecord none;
  return present ? *present : none;
}

/// Whether it has chunks on a path with that index or a later one.
static bool NamesPathFrom(const SavedCommit &commit, size_t path) {
  return std::any_of(commit.paths.begin(), commit.paths.end(),
                     [&](int32_t named) { return named >= int32_t(path); });
}

std::vector<SavedCommit> Commits::Add(SavedCommit made, size_t given, const IsRead &is_read) {
  // Commits after the present one belong to a past that this process left.
  std::vector<SavedCommit> stay, dropped;
  for (SavedCommit &commit : kept.commits) {
    const int64_t step = commit.record.step;
    const bool stays = present && step <= present->step && step != made.record.step;
    (stays ? stay : dropped).push_back(std::move(commit));
  }
  kept.commits = std::move(stay);
  kept.commits.push_back(std::move(made));
  std::optional<SavedCommit> oldest;
  while (HasMore() && (oldest = DropOldest(given, is_read)))
    dropped.push_back(*std::move(oldest));
  return dropped;
}

std::optional<SavedCommit> Commits::DropOldest(size_t given, const IsRead &is_read) {
  std::vector<SavedCommit> &commits = kept.commits;
  const SavedCommit *best = most_kept > 1 ? BestCommit(kept) : nullptr;
  if (best && NamesPathFrom(*best, given))
    best = nullptr;
  const auto last = std::prev(commits.end());
  const auto find = [&](bool readable) {
    return std::find_if(commits.begin(), last, [&](const SavedCommit &commit) {
      return &commit != best && (commit.fault.ok() || !readable) &&
             !(is_read && is_read(commit.record.step));
    });
  };
  auto oldest = find(/*readable=*/true);
  if (oldest == last)
    oldest = find(/*readable=*/false);
  if (oldest == last)
    return std::nullopt;
  SavedCommit dropped = std::move(*oldest);
  commits.erase(oldest);
  return dropped;
}

const SavedCommit *BestCommit(const Manifest &manifest) {
  const SavedCommit *best = nullptr;
  for (auto it = manifest.commits.rbegin(); it != manifest.commits.rend(); ++it) {
    const CommitRecord &record = it->record;
    if (record.validation_loss &&
        (!best || (record.validated_on == best->record.validated_on &&
                   *record.validation_loss <= *best->record.validation_loss)))
      best = &*it;
  }
  return best;
}

} // namespace boa
