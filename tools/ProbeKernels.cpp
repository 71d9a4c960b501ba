//===- ProbeKernels.cpp - Compiled kernels, measured ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a training of one GPT block and runs its kernels as an engine would. Their products and
// attention are bound to functions that also take the time. The rest of a kernel's time goes to the
// ops between them. A rate is the compiler's count of costs divided by such a time. `boa simulate`
// divides the same costs by the rate.
//
// Prepared buffers hold arbitrary numbers, as the others do. The kernels that make them are not
// run.
//
//===----------------------------------------------------------------------===//
#include "tools/Probe.h"

#include "runtime/device/updates.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/cached_attention.h"
#include "runtime/kernels/check.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/isa.h"
#include "runtime/probe/host.h"
#include "runtime/support/thread_pool.h"
#include "tools/CompiledProgram.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>

namespace boa {
namespace {

constexpr char kBlock[] = R"(
model probe(vocab = 256, context = 256, width = 768, heads = 12) {
  stage embed(tokens: [context] token) -> [context, width] {
    param table: [vocab, width] = normal(0.02)
    return embedding(table, tokens)
  }
  layer block(x: [context, width]) -> [context, width] repeat 2 {
    param ln1_w: [width] = ones
    param ln1_b: [width] = zeros
    param qkv_w: [width, 3 * width] = normal(0.02)
    param qkv_b: [3 * width] = zeros
    param out_w: [width, width] = normal(0.02)
    param out_b: [width] = zeros
    let q, k, v = split(linear(layer_norm(x, ln1_w, ln1_b), qkv_w, qkv_b), 3)
    let h = x + linear(attention(q, k, v, heads, causal), out_w, out_b)
    param ln2_w: [width] = ones
    param ln2_b: [width] = zeros
    param up_w: [width, 4 * width] = normal(0.02)
    param up_b: [4 * width] = zeros
    param down_w: [4 * width, width] = normal(0.02)
    param down_b: [width] = zeros
    return h + linear(gelu(linear(layer_norm(h, ln2_w, ln2_b), up_w, up_b)), down_w, down_b)
  }
  stage head(x: [context, width], targets: [context] token) -> loss {
    return cross_entropy(linear(x, transpose(embed.table)), targets)
  }
}
train probe { data = "none"  batch = 4 sequences  steps = 1  optimizer = adamw(lr = 1e-4) }
plan { place = device  micro_batch = 2 sequences }
)";
constexpr char kShape[] = "a block of width 768, 512 rows";

//===----------------------------------------------------------------------===//
// Functions that take the time
//===----------------------------------------------------------------------===//

/// Of the calls since they were set to 0, by kind. Kernels call from one thread.
struct Seconds {
  double product = 0, attention = 0;
  double prepare = 0; // no kernel of a block makes a form
};
Seconds taken;

template <auto kind, auto function> struct Timed;
template <auto kind, typename... Args, void (*function)(Args...)> struct Timed<kind, function> {
  static void call(Args... arguments) {
    const double begin = ProbeNow();
    function(arguments...);
    taken.*kind += ProbeNow() - begin;
  }
  static HostSymbol symbol(const char *name) { return {name, reinterpret_cast<void *>(call)}; }
};

std::vector<HostSymbol> timedSymbols() {
  return {
#define BOA_LIBRARY_CALL(KIND, NAME) Timed<&Seconds::KIND, NAME>::symbol(#NAME),
#include "runtime/kernels/library.def"
  };
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

/// The compiled training in one format, and memory for it.
class Block {
public:
  const NumberFormat format;
  explicit Block(NumberFormat format) : format(format) {}

  absl::Status compile() {
    CompileRequest request;
    request.texts = {{"spec", kBlock}};
    request.replaced = timedSymbols();
    request.overrides = {"train.weights=" + WordOf(format), "train.compute=" + WordOf(format)};
    absl::Status status = compiled.compile(request);
    if (status.ok())
      status = compiled.find(kernels);
    if (!status.ok())
      return status;
    // No buffer is larger than an entry. A prepared buffer may be much larger than the others.
    int64_t space = 0;
    for (const Storage &storage : compiled.program.storages) {
      int64_t &most = storage.role == "prepared" ? formBytes : stride;
      most = std::max(most, storage.bytes);
    }
    count = 2 + compiled.program.optimizer.states.size(); // of an update
    for (const Kernel &kernel : compiled.program.kernels) {
      space = std::max(space, kernel.workspace);
      count = std::max(count, kernel.buffers.size());
    }
    // A layer's weights are not in the caches when its turn comes: two sets in turns.
    for (auto [memory, bytes] : {std::pair(&buffers, kSets * int64_t(count) * stride),
                                 std::pair(&forms, kSets * std::max<int64_t>(formBytes, 1)),
                                 std::pair(&workspace, std::max<int64_t>(space, 1))}) {
      absl::StatusOr<ProbeMemory> made = ProbeMemory::Allocate(bytes);
      if (!made.ok())
        return made.status();
      *memory = *std::move(made);
    }
    return absl::OkStatus();
  }

  struct Times {
    double product = 0, attention = 0, rest = 0;
    double all() const { return product + attention + rest; }
  };
  /// Forward and backward of one layer.
  Times run() {
    taken = {};
    const int64_t set = turn++ % kSets;
    std::vector<void *> addresses;
    for (size_t i = 0; i < count; ++i)
      addresses.push_back(buffers.data() + (set * int64_t(count) + int64_t(i)) * stride);
    const double begin = ProbeNow();
    for (size_t i = 0; i < compiled.program.kernels.size(); ++i)
      if (const Kernel &kernel = compiled.program.kernels[i]; isOfBlock(kernel)) {
        std::vector<void *> list = addresses;
        if (asksForForm(kernel))
          list[kernel.buffers.size() - 1] =
              hasForm(kernel) ? forms.data() + set * formBytes : nullptr;
        kernels.table[i](list.data(), workspace.data(), nullptr);
      }
    const double all = ProbeNow() - begin;
    return {taken.product, taken.attention, all - taken.product - taken.attention};
  }

  /// The compiler's count of the cost of a run, in the format of this block.
  KernelCost cost() const {
    KernelCost sum;
    for (const Kernel &kernel : compiled.program.kernels)
      if (const auto cost = kernel.costs.find(format);
          isOfBlock(kernel) && cost != kernel.costs.end()) {
        sum.product_flops += cost->second.product_flops;
        sum.attention_flops += cost->second.attention_flops;
        sum.elementwise_bytes += cost->second.elementwise_bytes;
      }
    return sum;
  }

  /// Bytes a second of updates of a layer, chunk by chunk.
  absl::StatusOr<Figure> measureUpdates(int turns);

private:
  static constexpr int kSets = 2;

  static bool isOfBlock(const Kernel &kernel) {
    return kernel.name == "block_forward" || kernel.name == "block_backward";
  }
  /// Whether a kernel takes a prepared buffer, which may be null. It alone is read and stands
  /// behind those that are written.
  static bool asksForForm(const Kernel &kernel) { return !kernel.buffers.back().write; }
  /// Whether a training has memory for the prepared buffer of a kernel.
  bool hasForm(const Kernel &kernel) const {
    return llvm::any_of(compiled.program.storages, [&](const Storage &storage) {
      return storage.role == "prepared" && storage.name == "prepared." + kernel.name;
    });
  }

  CompiledProgram compiled;
  Kernels kernels = nullptr;
  ProbeMemory buffers, forms, workspace;
  int64_t stride = 0;    // of a buffer
  int64_t formBytes = 0; // of a prepared buffer
  size_t count = 0;      // of buffers of a set
  int turn = 0;
};

absl::StatusOr<Figure> Block::measureUpdates(int turns) {
  const Program &program = compiled.program;
  Updates updates(program, kernels.optimizer);
  Work work;
  work.kind = Work::Kind::update;
  work.count = 1;
  work.step = 1;
  while (program.groups[size_t(work.index)].name != "block")
    ++work.index;
  const Group &group = program.groups[size_t(work.index)];
  const int64_t elements = group.chunk_elements;
  // Weights, gradient, states. A training's states begin with zeros.
  std::memset(buffers.data() + 2 * stride, 0, program.optimizer.states.size() * size_t(stride));
  std::vector<double> rates;
  for (int turn = 0; turn < turns; ++turn) {
    const double begin = ProbeNow();
    for (work.first = 0; work.first < group.chunks; ++work.first) {
      auto at = [&](int operand) {
        return buffers.data() + operand * stride + work.first * elements * 4;
      };
      std::vector<char *> addresses = {at(0), nullptr, at(1)};
      for (size_t state = 0; state < program.optimizer.states.size(); ++state)
        addresses.push_back(at(2 + int(state)));
      if (absl::Status status = updates.Update(work, addresses); !status.ok())
        return status;
    }
    rates.push_back(double(group.chunks * UpdateBytes(program, group)) / (ProbeNow() - begin));
  }
  return MedianOf(rates, absl::StrCat("adamw in f32, ", group.chunks, " chunks of ", elements,
                                      " weights, ", Threads(), " threads"));
}

//===----------------------------------------------------------------------===//
// Instruction sets
//===----------------------------------------------------------------------===//

double medianSeconds(Block &block, int turns) {
  std::vector<double> seconds;
  for (int turn = 0; turn < turns; ++turn)
    seconds.push_back(block.run().all());
  return MedianOf(seconds, "").value;
}

/// Uses the set whose kernels take the least time for all formats. The one that Boa would choose
/// wins unless another is clearly faster.
absl::Status chooseSet(bool quick, std::deque<Block> &blocks, MachineFigures &figures) {
  constexpr int kTurns = 3;
  constexpr double kClearly = 0.95;
  if (const char *named = std::getenv("BOA_CPU")) {
    figures.kernels = named;
    figures.names_kernels = true;
    const absl::Status status = UseIsa(named);
    return status.ok() ? CheckKernels(UsedIsa())
                       : absl::Status(status.code(),
                                      absl::StrCat("BOA_CPU=", named, ": ", status.message()));
  }
  const Isa table = UsedIsa();
  Isa best = table;
  if (absl::Status status = CheckKernels(table); !status.ok())
    return status;
  auto measure = [&] {
    double seconds = 0;
    for (Block &block : blocks)
      seconds += medianSeconds(block, kTurns);
    return seconds;
  };
  if (!quick) {
    measure(); // touches the memory
    double least = kClearly * measure();
    for (const char *name : kIsaNames) {
      const absl::StatusOr<Isa> isa = ChooseIsa(ThisProcessor(), name);
      // The baseline is for processors that have nothing else.
      if (!isa.ok() || *isa == table || *isa == Isa::kBaseline)
        continue;
      if (absl::Status status = UseIsa(name); !status.ok())
        return status;
      if (const double seconds = CheckKernels(*isa).ok() ? measure() : least; seconds < least) {
        least = seconds;
        best = *isa;
      }
    }
  }
  figures.kernels = IsaName(best);
  figures.names_kernels = best != table;
  return UseIsa(figures.kernels);
}

} // namespace

absl::Status measureKernels(bool quick, MachineFigures &figures) {
  // In each format in which a training computes.
  std::deque<Block> blocks;
  for (const std::string &word : SplitWords(WordList(ComputeType())))
    if (absl::Status status = blocks.emplace_back(*ParseWord<NumberFormat>(word)).compile();
        !status.ok())
      return status;
  if (absl::Status status = chooseSet(quick, blocks, figures); !status.ok())
    return status;
  const int turns = quick ? 5 : 15;
  const std::string how = absl::StrCat(kShape, ", ", figures.kernels, " on ", figures.threads,
                                       " threads, median of ", turns);
  for (Block &block : blocks) {
    block.run();
    const KernelCost cost = block.cost();
    std::vector<double> product, attention, elementwise;
    for (int turn = 0; turn < turns; ++turn) {
      const Block::Times times = block.run();
      product.push_back(cost.product_flops / times.product);
      attention.push_back(cost.attention_flops / times.attention);
      elementwise.push_back(cost.elementwise_bytes / times.rest);
    }
    figures.formats[block.format] = {MedianOf(product, how), MedianOf(attention, how),
                                     MedianOf(elementwise, how)};
  }
  absl::StatusOr<Figure> updates = blocks.front().measureUpdates(turns);
  if (updates.ok())
    figures.optimizer = *std::move(updates);
  return updates.status();
}

} // namespace boa
