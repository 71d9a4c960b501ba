//===- programs.cpp - Random programs on the engine -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What no compiler would write but the ABI permits: copies that are never used,
// several of one chunk, chunks that are written and read in any order, copies that
// are kept, homes of two tiers, one memory or two, copies between them, a driver that is
// held up. Each program is also run on plain vectors, one command after another;
// whatever the order in which the engine ran it, the bytes must be the same.
//
//===----------------------------------------------------------------------===//
#include "test/simulation/campaign.h"

#include "runtime/engine/engine.h"
#include "test/runtime/chunks.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <cstring>

namespace boa {
namespace {

constexpr int64_t kWords = 1024; // of a chunk
constexpr int32_t kChunks = 2, kEntries = 3, kSlots = 4, kStorages = 4;
constexpr int32_t kMemory = 2, kMixed = 3; // the storages of which something lives there
using Words = std::vector<uint32_t>;

/// b is read, a is read and written (mix) or only written (fill).
void Combine(uint32_t *a, const uint32_t *b, int64_t count, bool fill) {
  for (int64_t i = 0; i < count; ++i)
    a[i] = fill ? b[i] * 5 + 1 : a[i] * 31 + b[i] * 7 + uint32_t(i);
}
template <int kCount, bool kFill> void Kernel2(void *const *buffers, void *, boa_queue *) {
  auto *a = static_cast<uint32_t *>(buffers[0]);
  auto *b = static_cast<const uint32_t *>(buffers[1]);
  for (int64_t i = 0; i < kCount * kWords; ++i)
    a[i] = kFill ? b[i] * 5 + 1 : a[i] * 31 + b[i] * 7 + uint32_t(i);
}
const boa_kernel kKernels[] = {Kernel2<1, false>, Kernel2<2, false>, Kernel2<1, true>,
                               Kernel2<2, true>};

Program MakeProgram(bool separate, bool direct) {
  Program program;
  program.model.name = "random";
  program.machine.memory = separate ? MemoryKind::separate : MemoryKind::unified;
  program.machine.direct = direct;
  for (int32_t s = 0; s < kStorages; ++s) {
    Storage storage;
    const char *names[] = {"kept", "scratch", "memory", "mixed"};
    storage.name = storage.role = names[s];
    storage.entries = {kEntries};
    storage.chunks = kChunks;
    storage.bytes = kChunks * kWords * 4;
    storage.persistent = s != 1;
    storage.homes = {{kEntries, {{s == kMemory ? Home::device : Home::ssd, kChunks}}}};
    if (s == kMixed) // by chunks, by entries
      storage.homes = {{1, {{Home::ssd, 1}, {Home::host, kChunks - 1}}},
                       {1, {{Home::ssd, kChunks}}},
                       {kEntries - 2, {{Home::host, kChunks}}}};
    // What is held has a slot in one space, and what is on its way one in the host's.
    storage.pools = {{BOA_DEVICE, kChunks, kSlots}, {BOA_HOST, kChunks, kSlots + 1}};
    program.storages.push_back(storage);
  }
  for (const char *name : {"mix", "mix", "fill", "fill"}) {
    Kernel kernel;
    kernel.name = name;
    kernel.buffers = {{*name == 'm', true}, {true, false}};
    program.kernels.push_back(kernel);
  }
  return program;
}

/// A copy of chunks that the program holds.
struct Copy {
  boa_buffer handle = 0;
  int32_t storage = 0, first = 0, count = 0, space = BOA_DEVICE;
  int64_t entry = 0;
  bool home = false; // nothing but where it lives: no words of its own
  Words words;
};

class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed)
      : dice(seed), disk(dice.Next()), scheduler(dice.Next()), separate(dice.Chance(0.5)),
        direct(separate && dice.Chance(0.5)), program(MakeProgram(separate, direct)) {}
  std::string Run();
  /// The commands of one run, by the dice.
  void Issue(boa_context *);

private:
  absl::Status Begin();
  std::string Compare();
  void Open(boa_context *);
  void Bring(boa_context *, Copy &, bool zero);
  void Launch(boa_context *);
  void Exchange(boa_context *);
  void Offload(boa_context *, const Copy &);
  void Release(boa_context *, size_t which);
  Words &Home(int32_t storage, int64_t entry) { return homes[storage * kEntries + entry]; }
  uint32_t *WordsOf(Copy &copy) {
    return copy.home ? Home(copy.storage, copy.entry).data() + copy.first * kWords
                     : copy.words.data();
  }
  bool IsHome(const Copy &) const;
  bool IsStaged(const Copy &copy) const {
    return separate && !direct && copy.space == BOA_DEVICE &&
           program.storages[size_t(copy.storage)].LivesOn(Home::ssd);
  }
  bool OnDevice(const Copy &copy) const { return !separate || copy.space == BOA_DEVICE; }
  Words Stored(const Copy &copy) {
    const Words &home = Home(copy.storage, copy.entry);
    return Words(home.begin() + copy.first * kWords,
                 home.begin() + (copy.first + copy.count) * kWords);
  }

  Dice dice;
  SimulatedDisk disk;
  SeededScheduler scheduler;
  const bool separate; // two memories
  const bool direct;   // of which SSDs reach both
  const Program program;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Engine> engine;
  Words homes[kStorages * kEntries]; // what should be where it lives
  std::vector<Copy> copies;          // held
  std::vector<Copy> kept;            // released, to be found again
};

RandomProgram *running = nullptr;
void Entry(boa_context *context, int64_t, int64_t) { running->Issue(context); }

absl::Status RandomProgram::Begin() {
  disk.AddDevice("/ssd");
  FaultRates rates;
  for (Fault fault : {Fault::delay, Fault::short_transfer, Fault::eagain, Fault::eintr})
    rates[fault] = dice.Of({0.0, 0.1});
  disk.SetRates(rates);
  absl::StatusOr<std::unique_ptr<StateStore>> made =
      StateStore::Create(disk, program, {"/ssd/state"});
  if (!made.ok())
    return made.status();
  state = *std::move(made);
  EngineOptions options;
  options.scheduler = &scheduler;
  options.run_ahead = dice.Of({1, 8 << 10, 1 << 27});
  options.io.depth = dice.Of({1, 3, 32});
  options.io.segment_bytes = dice.Of({4096, 1 << 20});
  absl::StatusOr<std::unique_ptr<Engine>> created =
      Engine::Create(program, kKernels, state.get(), options);
  if (!created.ok())
    return created.status();
  engine = *std::move(created);
  for (int32_t s = 0; s < kStorages; ++s)
    for (int64_t e = 0; e < kEntries; ++e)
      for (int32_t c = 0; c < kChunks; ++c) {
        Words words(kWords);
        for (uint32_t &word : words)
          word = uint32_t(dice.Next());
        absl::Status status = WriteChunk(*engine, s, e, c, words.data(), kWords * 4);
        if (!status.ok())
          return status;
        Home(s, e).insert(Home(s, e).end(), words.begin(), words.end());
      }
  return absl::OkStatus();
}

/// All of it lives in one memory, which is that of its space.
bool RandomProgram::IsHome(const Copy &copy) const {
  const Storage &storage = program.storages[size_t(copy.storage)];
  for (int32_t c = copy.first; c < copy.first + copy.count; ++c)
    if (const Home::Tier tier = storage.TierOf(copy.entry, c);
        tier == Home::ssd || (separate && (tier == Home::host) != (copy.space == BOA_HOST)))
      return false;
  return true;
}

/// The chunks in its space: where no SSD reaches the device's memory they take the way by the
/// host.
void RandomProgram::Bring(boa_context *context, Copy &copy, bool zero) {
  if (zero || !IsStaged(copy)) {
    copy.handle = boa_rt_prefetch(context, copy.storage, copy.entry, copy.first, copy.count,
                                  copy.space, zero);
    return;
  }
  copy.handle =
      boa_rt_create(context, copy.storage, copy.entry, copy.first, copy.count, copy.space);
  for (int32_t c = copy.first; c < copy.first + copy.count; ++c) {
    const boa_buffer one =
        boa_rt_prefetch(context, copy.storage, copy.entry, c, 1, BOA_HOST, /*zero=*/0);
    boa_rt_copy(context, one, copy.handle, c, 1);
    boa_rt_release(context, one, 0);
  }
}

void RandomProgram::Open(boa_context *context) {
  Copy copy;
  copy.storage = int32_t(dice.Below(kStorages));
  copy.entry = dice.Below(kEntries);
  copy.count = int32_t(1 + dice.Below(kChunks));
  copy.first = int32_t(dice.Below(kChunks - copy.count + 1));
  copy.space = separate && dice.Chance(0.4) ? BOA_HOST : BOA_DEVICE;
  copy.home = IsHome(copy);
  // Whoever asks for more slots than there are waits for ever: those that are kept
  // take one each.
  int64_t taken = 0;
  for (const auto *list : {&copies, &kept})
    for (const Copy &other : *list)
      taken += other.storage == copy.storage && !other.home;
  if (taken >= kSlots && !copy.home)
    return;
  const bool zero = dice.Chance(0.2), create = !zero && dice.Chance(0.2) && !copies.empty();
  const bool staged = IsStaged(copy);
  auto overlaps = [&](const Copy &other) {
    return other.storage == copy.storage && other.entry == copy.entry &&
           other.first < copy.first + copy.count && copy.first < other.first + other.count;
  };
  for (size_t i = kept.size(); i-- > 0;) {
    const Copy &other = kept[i];
    const bool same = other.first == copy.first && other.count == copy.count &&
                      other.space == copy.space && !staged;
    if (overlaps(other) && !copy.home && (zero || create || same || staged))
      kept.erase(kept.begin() + int64_t(i));
  }
  copy.words = Stored(copy);
  if (create) {
    copy.handle =
        boa_rt_create(context, copy.storage, copy.entry, copy.first, copy.count, copy.space);
    // What is made is written before anything else.
    for (Copy &from : copies)
      if (from.count == copy.count && OnDevice(copy) && OnDevice(from) &&
          WordsOf(from) != WordsOf(copy)) {
        const boa_buffer handles[] = {copy.handle, from.handle};
        boa_rt_launch(context, copy.count + 1, 2, handles);
        Combine(WordsOf(copy), WordsOf(from), copy.count * kWords, true);
        copies.push_back(std::move(copy));
        return;
      }
    boa_rt_release(context, copy.handle, 0);
    return;
  }
  Bring(context, copy, zero);
  if (zero)
    std::fill_n(WordsOf(copy), copy.count * kWords, 0);
  copies.push_back(std::move(copy));
}

void RandomProgram::Launch(boa_context *context) {
  Copy &a = copies[size_t(dice.Below(int64_t(copies.size())))];
  Copy &b = copies[size_t(dice.Below(int64_t(copies.size())))];
  if (a.count != b.count || WordsOf(a) == WordsOf(b) || !OnDevice(a) || !OnDevice(b))
    return;
  // Two views of one home, of which a part is the same.
  if (a.home && b.home && a.storage == b.storage && a.entry == b.entry)
    return;
  const bool fill = dice.Chance(0.3);
  const boa_buffer handles[] = {a.handle, b.handle};
  boa_rt_launch(context, a.count - 1 + (fill ? 2 : 0), 2, handles);
  Combine(WordsOf(a), WordsOf(b), a.count * kWords, fill);
}

/// Copies what both hold.
void RandomProgram::Exchange(boa_context *context) {
  Copy &from = copies[size_t(dice.Below(int64_t(copies.size())))];
  Copy &to = copies[size_t(dice.Below(int64_t(copies.size())))];
  const int32_t first = std::max(from.first, to.first);
  const int32_t count = std::min(from.first + from.count, to.first + to.count) - first;
  if (from.storage != to.storage || count < 1 || from.handle == to.handle)
    return;
  boa_rt_copy(context, from.handle, to.handle, first, count);
  std::memmove(WordsOf(to) + (first - to.first) * kWords,
               WordsOf(from) + (first - from.first) * kWords, size_t(count * kWords * 4));
}

void RandomProgram::Offload(boa_context *context, const Copy &copy) {
  // Where no SSD reaches the device's memory, what is written there goes home with a
  // copy of the host's.
  if (IsStaged(copy))
    return;
  const int32_t count = int32_t(1 + dice.Below(copy.count));
  const int32_t first = copy.first + int32_t(dice.Below(copy.count - count + 1));
  boa_rt_offload(context, copy.handle, copy.storage, copy.entry, first, count);
  if (!copy.home)
    std::copy_n(copy.words.begin() + (first - copy.first) * kWords, count * kWords,
                Home(copy.storage, copy.entry).begin() + first * kWords);
  for (size_t i = kept.size(); i-- > 0;)
    if (kept[i].storage == copy.storage && kept[i].entry == copy.entry &&
        kept[i].first < first + count && first < kept[i].first + kept[i].count)
      kept.erase(kept.begin() + int64_t(i));
}

void RandomProgram::Release(boa_context *context, size_t which) {
  Copy copy = std::move(copies[which]);
  copies.erase(copies.begin() + int64_t(which));
  // To keep one that differs from what is stored would be an error of the program.
  const bool keep = copy.storage < kMemory && copy.words == Stored(copy) && dice.Chance(0.5);
  boa_rt_release(context, copy.handle, keep);
  if (!keep)
    return;
  for (size_t i = kept.size(); i-- > 0;)
    if (kept[i].storage == copy.storage && kept[i].entry == copy.entry &&
        (!separate || kept[i].space == copy.space) && kept[i].first < copy.first + copy.count &&
        copy.first < kept[i].first + kept[i].count)
      kept.erase(kept.begin() + int64_t(i));
  kept.push_back(std::move(copy));
}

void RandomProgram::Issue(boa_context *context) {
  for (int64_t left = 5 + dice.Below(25); left > 0; --left) {
    const int64_t what = dice.Below(9);
    if (what < 3 || copies.empty())
      Open(context);
    else if (what < 5)
      Launch(context);
    else if (what < 6)
      Exchange(context);
    else if (what < 8)
      Offload(context, copies[size_t(dice.Below(int64_t(copies.size())))]);
    else
      Release(context, size_t(dice.Below(int64_t(copies.size()))));
  }
  while (!copies.empty())
    Release(context, 0);
}

std::string RandomProgram::Compare() {
  for (int32_t s = 0; s < kStorages; ++s)
    for (int64_t e = 0; e < kEntries; ++e)
      for (int32_t c = 0; c < kChunks; ++c) {
        Words words(kWords);
        if (absl::Status status = ReadChunk(*engine, s, e, c, words.data(), kWords * 4);
            !status.ok())
          return status.ToString();
        if (std::memcmp(words.data(), Home(s, e).data() + c * kWords, kWords * 4) != 0)
          return absl::StrFormat("%s entry %d chunk %d is not what the program made of it",
                                 program.storages[size_t(s)].name, e, c);
      }
  return "";
}

std::string RandomProgram::Run() {
  if (absl::Status status = Begin(); !status.ok())
    return status.ToString();
  running = this;
  std::string failure;
  for (int64_t left = 1 + dice.Below(6); left > 0 && failure.empty(); --left) {
    const int64_t run = engine->Enqueue(Entry, 1, 0);
    absl::Status status;
    if (dice.Chance(0.3))
      status = engine->Wait(run);
    if (status.ok() && dice.Chance(0.3))
      failure = Compare();
    if (status.ok() && dice.Chance(0.3))
      status = engine->Commit({left, 0, {}});
    if (!status.ok())
      failure = status.ToString();
  }
  return failure.empty() ? Compare() : failure;
}

} // namespace

std::string RunProgram(uint64_t seed) {
  std::string failure = RandomProgram(seed).Run();
  return failure.empty() ? "" : "random program: " + failure;
}

} // namespace boa
