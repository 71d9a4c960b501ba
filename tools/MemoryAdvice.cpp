//===- MemoryAdvice.cpp ---------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/MemoryAdvice.h"

#include "dialect/Config.h"
#include "passes/schedule/StepSize.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

using namespace mlir;

namespace boa {
namespace {

using Changes = std::vector<std::string>; // as --set takes them
constexpr int64_t kMostBlocks = 4096;     // as plan.vocabulary_blocks takes them
constexpr double kMostSeconds = 20;       // of the search, on a machine of today
constexpr double kManyLayerRuns = 1000;

/// Rounded up.
std::string printBytes(double bytes) {
  const bool isLarge = bytes >= 64 * 0x1p20;
  return absl::StrCat(int64_t(std::ceil(bytes / (isLarge ? 0x1p20 : 0x1p10))),
                      isLarge ? "MiB" : "KiB");
}

/// Compiles a spec with changes of its plan.
class Attempts {
public:
  explicit Attempts(const CompileRequest &spec) : request(spec) {
    request.simulate = true;
    request.onlyFits = true;
    request.dump.clear();
  }

  bool fits(const Changes &changes) {
    const FitResult made = compile(changes);
    return made.possible && !made.need;
  }

  /// The settings of the spec without changes; none if the spec is wrong.
  std::optional<Config> config() {
    auto module = compiler.load(request);
    return module.ok() ? std::optional<Config>(**module) : std::nullopt;
  }

  /// A change that only another order has is not possible, for example.
  FitResult compile(const Changes &changes) {
    CompileRequest changed = request;
    llvm::append_range(changed.overrides, changes);
    changed.kernels = "as given";
    for (const std::string &change : changes)
      if (mayChangeKernels(change))
        absl::StrAppend(&changed.kernels, " ", change);
    auto module = compiler.load(changed);
    if (!module.ok())
      return {};
    const double runs = layerRunsOf(**module), begin = seconds();
    if (begin + runs * secondsOfLayerRun > kMostSeconds) {
      leftOut = true;
      return {};
    }
    const bool done = compiler.lower(**module, changed, Phase::llvm).ok();
    if (runs >= kManyLayerRuns) // of fewer, the rest takes longer
      secondsOfLayerRun = std::max(secondsOfLayerRun, (seconds() - begin) / runs);
    return {done || compiler.memoryNeed(), compiler.memoryNeed()};
  }

  /// Whether changes were left out that take too long to try.
  bool leftSomeOut() const { return leftOut; }

private:
  static double layerRunsOf(ModuleOp module) {
    const Config config(module);
    const int64_t blocks = config.plan.vocabulary_blocks;
    return double(countLayerRuns(module)) +
           (blocks > 1 ? 2.0 * double(blocks) * double(config.microBatches()) : 0);
  }
  /// Since the search began.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }

  CompileRequest request;
  Compiler compiler{/*quiet=*/true};
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  // A program that does not fit is compiled twice (FitMemory.h). A slow machine shows in attempts.
  double secondsOfLayerRun = 2 * kSecondsOfLayerRun;
  bool leftOut = false;
};

std::string microBatch(int64_t sequences) { return absl::StrCat("plan.micro_batch=", sequences); }
std::string vocabularyBlocks(int64_t count) {
  return absl::StrCat("plan.vocabulary_blocks=", count);
}
std::string keep(int64_t layers) { return absl::StrCat("plan.schedule.keep=", layers); }

/// Changes that may take less memory, the ones that cost least first. Some are of one order
/// alone.
Changes changesOf(const Config &config) {
  Changes changes;
  if (TraitsOf(config.machine.device).has_libraries &&
      config.machine.attention != AttentionKind::own)
    changes.push_back("machine.device.attention=own");
  if (!config.plan.recompute)
    changes.push_back("plan.schedule.recompute=true");
  if (config.plan.keep > 0)
    changes.push_back(keep(0));
  if (config.plan.delay > 0)
    changes.push_back("plan.schedule.delay=0");
  if (config.plan.schedule != Schedule::vertical)
    changes.push_back("plan.schedule=vertical");
  if (IsSeparate(config.machine))
    changes.push_back("plan.place=host");
  changes.push_back("plan.place=ssd");
  return changes;
}

/// The first number that fits with the changes; 0 if none does. Each number takes less memory than
/// the one before, and longer to compile.
int64_t findFirst(Attempts &attempts, const Changes &changes, const std::vector<int64_t> &numbers,
                  std::string (*change)(int64_t)) {
  auto with = [&](int64_t number) {
    Changes tried = changes;
    tried.push_back(change(number));
    return tried;
  };
  auto fits = [&](int64_t number) { return attempts.fits(with(number)); };
  // Each stride is twice the one before, so all attempts take little longer than the last.
  llvm::ArrayRef<int64_t> left(numbers);
  for (size_t stride = 1; !left.empty(); stride *= 2) {
    llvm::ArrayRef<int64_t> next = left.take_front(stride);
    FitResult made = attempts.compile(with(next.back()));
    // A number that takes too long, or is not possible, tells nothing about those before it.
    while (!made.possible && next.size() > 1) {
      next = next.take_front(next.size() / 2);
      made = attempts.compile(with(next.back()));
    }
    if (!made.possible)
      return 0;
    if (!made.need)
      return *llvm::partition_point(next, [&](int64_t n) { return n != next.back() && !fits(n); });
    left = left.drop_front(next.size());
  }
  return 0;
}

int64_t largestMicroBatch(Attempts &attempts, const Config &config, const Changes &changes) {
  std::vector<int64_t> smaller;
  for (int64_t size = config.microBatch() - 1; size > 0; --size)
    if (config.train.batch % size == 0)
      smaller.push_back(size);
  return findFirst(attempts, changes, smaller, microBatch);
}

int64_t largestKeep(Attempts &attempts, const Config &config) {
  std::vector<int64_t> fewer;
  for (int64_t layers = config.plan.keep - 1; layers > 0; --layers)
    fewer.push_back(layers);
  return findFirst(attempts, {}, fewer, keep);
}

int64_t fewestBlocks(Attempts &attempts, const Config &config, const Changes &changes) {
  return findFirst(attempts, changes,
                   moreVocabularyBlocks(config.model.vocab, config.plan.vocabulary_blocks),
                   vocabularyBlocks);
}

std::string linesOf(llvm::ArrayRef<std::string> changes) {
  std::string lines;
  for (const std::string &change : changes)
    absl::StrAppend(&lines, "\n    --set ", change);
  return lines;
}

std::string advise(Attempts &attempts, const Config &config) {
  Changes enough, all;
  for (const std::string &change : changesOf(config)) {
    const FitResult made = attempts.compile({change});
    if (!made.possible)
      continue;
    all.push_back(change);
    if (!made.need)
      enough.push_back(change == keep(0) ? keep(largestKeep(attempts, config)) : change);
  }
  if (int64_t count = fewestBlocks(attempts, config, {}))
    enough.push_back(vocabularyBlocks(count));
  if (int64_t size = largestMicroBatch(attempts, config, {}))
    enough.push_back(microBatch(size));
  if (enough.size() == 1)
    return "it fits with" + linesOf(enough);
  if (!enough.empty())
    return "it fits with any of" + linesOf(enough);

  // The last place is the one that takes least.
  llvm::erase(all, "plan.place=host");
  const bool smaller = config.microBatch() > 1;
  if (smaller)
    all.push_back(microBatch(1));
  FitResult least = attempts.compile(all);
  if (!least.possible || least.need)
    if (const int64_t blocks = fewestBlocks(attempts, config, all)) {
      all.insert(all.end() - smaller, vocabularyBlocks(blocks));
      least = attempts.compile(all);
    }
  if (!least.possible)
    return "give more memory";
  if (least.need) {
    const Changes memory = findMemory(config.machine, *least.need, [&](const Changes &more) {
      Changes tried = all;
      llvm::append_range(tried, more);
      return attempts.compile(tried);
    });
    if (memory.empty())
      return "give more memory";
    const std::string reason =
        absl::StrCat("no plan is enough: ", least.need->text, "; it fits with all of");
    llvm::append_range(all, memory);
    return reason + linesOf(all);
  }
  // Each that is not needed goes, the costliest first.
  if (smaller)
    all.pop_back();
  // Where time does not last to find a larger one, 1 fits.
  int64_t size = smaller ? std::max<int64_t>(largestMicroBatch(attempts, config, all), 1) : 0;
  auto with = [&](Changes changes) {
    if (size)
      changes.push_back(microBatch(size));
    return changes;
  };
  for (size_t i = all.size(); i-- > 0;) {
    Changes fewer = all;
    fewer.erase(fewer.begin() + ptrdiff_t(i));
    if (attempts.fits(with(fewer)))
      all = fewer;
  }
  return "no change of the plan is enough by itself, but it fits with all of" + linesOf(with(all));
}

} // namespace

std::vector<int64_t> moreVocabularyBlocks(int64_t vocab, int64_t blocks) {
  std::vector<int64_t> counts;
  for (int64_t count = blocks + 1; count <= std::min(kMostBlocks, vocab); ++count)
    if (vocab % count == 0)
      counts.push_back(count);
  return counts;
}

std::vector<std::string> findMemory(const MachineSettings &machine, MemoryNeed need,
                                    llvm::function_ref<FitResult(const Changes &)> compileWith) {
  double device = double(machine.device_memory), host = double(machine.host_memory);
  // A refusal names one memory. With more of it other buffers may stay there.
  for (int attempt = 0; attempt < 12; ++attempt) {
    const double needed = double(need.bytes);
    if (!need.space)
      (device > 0 ? device : host) += std::max(needed - device - host, 0.0);
    else if (*need.space == Space::device)
      device = std::max(device, needed);
    else
      host = std::max(host, needed);
    Changes changes;
    if (device > double(machine.device_memory))
      changes.push_back("machine.device.memory=" + printBytes(device));
    if (host > double(machine.host_memory))
      changes.push_back("machine.host.memory=" + printBytes(host));
    const FitResult made = compileWith(changes);
    if (!made.possible)
      break;
    if (!made.need)
      return changes;
    need = *made.need;
  }
  return {};
}

std::string adviseOnMemory(const CompileRequest &request) {
  if (!request.adviceOnMemory.empty())
    return absl::StrCat("  ", request.adviceOnMemory, "\n");
  if (request.purpose != Purpose::train ||
      llvm::StringRef(request.files.front()).ends_with(".mlir"))
    return "";
  Attempts attempts(request);
  const std::optional<Config> config = attempts.config();
  if (!config)
    return "";
  std::fprintf(stderr, "  looking for a plan that fits, for at most %.0f s\n", kMostSeconds);
  std::string advice = absl::StrCat("  ", advise(attempts, *config), "\n");
  if (attempts.leftSomeOut())
    absl::StrAppend(&advice,
                    "  the search ended before it had tried all plans: others would have "
                    "taken longer than its ",
                    kMostSeconds, " s to compile\n");
  return advice;
}

} // namespace boa
