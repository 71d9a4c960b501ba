//===- memory_fixture.h - An engine with two memories --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model of memory of runtime/abi/abi.h, rule by rule, where device and host are one
// memory, where they are two, and where SSDs reach both: of a CPU, and, where this is compiled
// for the fake of CUDA's driver, of a GPU. Entries have six chunks; in `mixed` the first two live
// on SSD, the next two on the host, the last two on the device.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_ENGINE_MEMORY_FIXTURE_H
#define BOA_TEST_RUNTIME_ENGINE_MEMORY_FIXTURE_H

#include "runtime/abi/cuda_calls.h"
#include "runtime/engine/engine.h"
#include "test/fake_cuda/emulated.h"
#include "test/runtime/chunks.h"
#include "test/runtime/cuda/emulated_sums.h"
#include "test/runtime/reference_optimizer.h"
#include "test/runtime/scratch.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace boa::memory_tests {

constexpr int64_t kChunk = 4096, kWords = kChunk / 8, kEntries = 2;
constexpr int32_t kChunks = 6;
enum StorageId : int32_t { kMixed, kDisk, kOnHost, kOnDevice };
enum KernelId : int32_t { kDouble, kDoubleTwo };

/// Twice what was there, and 1 where it was 0.
inline void DoubleWord(uint64_t &word) { word = word ? 2 * word : 1; }
inline void EmulatedWord(boa_emulated_thread *thread, void *const *args) {
  DoubleWord((*static_cast<uint64_t *const *>(args[0]))[thread->block[0] * 64 + thread->thread[0]]);
}

/// In so many chunks.
template <int kCount> void Double(void *const *buffers, void *, boa_queue *queue) {
  if (queue)
    return boa_cuda_launch(queue, 0, kCount * kWords / 64, 1, 1, 64, 1, 1, 0, 1, buffers);
  auto *words = static_cast<uint64_t *>(buffers[0]);
  for (int64_t i = 0; i < kCount * kWords; ++i)
    DoubleWord(words[i]);
}
inline const boa_kernel kTable[] = {Double<kChunks>, Double<2>};
inline const boa_emulated_function kFunctions[] = {{"double", EmulatedWord, 0, 1},
                                                   {"sums_4096", EmulatedSums<kChunk>, 0, 3}};
inline const boa_emulated_module kModule = {BOA_EMULATED_MAGIC, 2, kFunctions};
inline const char *const kNames[] = {"double", "sums_4096"};
inline const boa_device_image kImage = {&kModule, sizeof(kModule), kNames, 2};
inline const Kernels kKernels(kTable, &kImage, &kReferenceSgd);

enum class Memories { unified, separate, direct, cuda, cuda_direct };
inline bool IsCuda(Memories memories) { return memories >= Memories::cuda; }
inline bool IsDirect(Memories memories) {
  return memories == Memories::direct || memories == Memories::cuda_direct;
}

inline std::function<void(boa_context *)> body;
inline void Drive(boa_context *context, int64_t, int64_t) { body(context); }

inline Program MakeProgram(Memories memories) {
  Program program;
  program.abi = BOA_ABI_VERSION;
  program.model.name = "memory";
  program.machine.memory =
      memories != Memories::unified ? MemoryKind::separate : MemoryKind::unified;
  program.machine.direct = IsDirect(memories);
  program.machine.device = IsCuda(memories) ? DeviceKind::cuda : DeviceKind::cpu;
  auto add = [&](const char *name, std::vector<Home> homes, bool persistent) {
    Storage &storage = program.storages.emplace_back();
    storage.name = storage.role = name;
    storage.entries = {kEntries};
    storage.chunks = kChunks;
    storage.bytes = kChunks * kChunk;
    storage.persistent = persistent;
    storage.homes = {{kEntries, std::move(homes)}};
    storage.pools = {{BOA_DEVICE, kChunks, 2}, {BOA_HOST, kChunks, 1}, {BOA_HOST, 1, 3}};
  };
  add("mixed", {{Home::ssd, 2}, {Home::host, 2}, {Home::device, 2}}, true);
  add("disk", {{Home::ssd, kChunks}}, false);
  add("on_host", {{Home::host, kChunks}}, true);
  add("on_device", {{Home::device, kChunks}}, true);
  program.kernels = {{"double", {{true, true}}}, {"double_two", {{true, true}}}};
  return program;
}

class MemoryTest : public testing::TestWithParam<Memories> {
protected:
#ifdef BOA_FAKE_DRIVER
  void SetUp() override {
    setenv("BOA_CUDA_DRIVER", BOA_FAKE_DRIVER, 1);
    setenv("BOA_CUDA_FILE", BOA_FAKE_FILE, 1);
    setenv("BOA_FAKE_CUDA", "delay_us=100", 1);
    setenv("BOA_FAKE_CUFILE", "delay_us=100", 1);
  }
#endif
  bool separate() const { return GetParam() != Memories::unified; }
  /// Whether what passes between SSD and the device passes the host.
  bool staged() const { return separate() && !IsDirect(GetParam()); }

  void Make(Program with, bool reopen = false) {
    engine.reset();
    state.reset();
    program = std::move(with);
    program.machine.ssd = {{scratch.path("state")}};
    auto opened = reopen ? StateStore::Open(SystemFiles(), program, {scratch.path("state")})
                         : StateStore::Create(SystemFiles(), program, {scratch.path("state")});
    ASSERT_TRUE(opened.ok()) << opened.status();
    state = *std::move(opened);
    auto made = Engine::Create(program, kKernels, state.get(), {});
    ASSERT_TRUE(made.ok()) << made.status();
    engine = *std::move(made);
  }
  void Make() {
    Make(MakeProgram(GetParam()));
    for (int32_t storage : {kMixed, kDisk, kOnHost, kOnDevice})
      for (int64_t entry = 0; entry < kEntries; ++entry)
        Fill(storage, entry, 100 * (entry + 1));
    ASSERT_TRUE(engine->Drain().ok());
    engine->TakeCounters();
  }

  absl::Status Run(std::function<void(boa_context *)> run) {
    body = std::move(run);
    absl::Status status = engine->Run(Drive, 1, 0);
    return status.ok() ? engine->Drain() : status;
  }
  /// Chunk c of the entry: base + c.
  void Fill(int32_t storage, int64_t entry, uint64_t base) {
    for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<uint64_t> words(kWords, base + chunk);
      absl::Status status = WriteChunk(*engine, storage, entry, chunk, words.data(), kChunk);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  /// The first word of each chunk; all of a chunk are the same.
  std::vector<uint64_t> Read(int32_t storage, int64_t entry) {
    std::vector<uint64_t> firsts;
    for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
      std::vector<uint64_t> words(kWords);
      absl::Status status = ReadChunk(*engine, storage, entry, chunk, words.data(), kChunk);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(words, std::vector<uint64_t>(kWords, words[0]));
      firsts.push_back(words[0]);
    }
    return firsts;
  }
  static std::vector<uint64_t> Times(uint64_t factor, uint64_t base) {
    std::vector<uint64_t> words;
    for (int32_t chunk = 0; chunk < kChunks; ++chunk)
      words.push_back(factor * (base + chunk));
    return words;
  }

  Scratch scratch;
  Program program;
  std::unique_ptr<StateStore> state;
  std::unique_ptr<Engine> engine;
};

} // namespace boa::memory_tests

#endif // BOA_TEST_RUNTIME_ENGINE_MEMORY_FIXTURE_H
