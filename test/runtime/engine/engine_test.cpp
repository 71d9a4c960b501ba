//===- engine_test.cpp - Traces, waits, schedules and limits --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"
#include "test/runtime/engine/fixture.h"

#include <iostream>
#include <sys/resource.h>

namespace boa::engine_test {
namespace {

INSTANTIATE_TEST_SUITE_P(Backends, EngineTest, testing::Values("preferred", "threads", "scheduled"),
                         [](const auto &info) { return info.param; });

TEST_P(EngineTest, TraceKeepsTheNewestInOrder) {
  EngineOptions options = Options();
  options.trace = true;
  options.trace_events = 10;
  Make(MakeProgram(), options);
  FillWords(kMemory);
  for (int64_t step = 1; step <= 2; ++step) {
    ASSERT_TRUE(Run(
                    [](boa_context *context) {
                      for (int i = 0; i < 33; ++i)
                        MixEntries(context, kMemory, 1, 2, 0, 0, i < 30 ? kMix : kSlowMix);
                    },
                    step)
                    .ok());
    std::vector<TraceEvent> trace = engine->TakeTrace();
    ASSERT_EQ(trace.size(), 10u);
    for (size_t i = 0; i < trace.size(); ++i) {
      EXPECT_EQ(trace[i].name, i < 7 ? "mix" : "slow_mix");
      EXPECT_LE(trace[i].begin_ns, trace[i].end_ns);
      EXPECT_TRUE(i == 0 || trace[i - 1].end_ns <= trace[i].begin_ns);
    }
  }
}

TEST_P(EngineTest, WaitsAreAttributed) {
  Program with = MakeProgram();
  Make(with, Options());
  FillWords(kData);
  ASSERT_TRUE(engine->Drain().ok());
  engine->TakeCounters();
  ASSERT_TRUE(Run([](boa_context *context) {
                for (int64_t i = 0; i + 2 < kEntries; ++i)
                  MixEntries(context, kData, i, i + 1, i + 2);
              }).ok());
  Counters counters = engine->TakeCounters();
  if (scheduled())
    return; // nobody waits while there is something to do
  EXPECT_GT(counters.waited_read, 0);
  EXPECT_EQ(counters.waited_optimizer, 0);
}

/// Threads of this process.
size_t ThreadCount() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

// With a scheduler a run is a function of the seed: the order of all that
// happens, too. Only results are the same for all seeds. There are no threads.
TEST(EngineSchedule, ASeedDecidesAllThatHappens) {
  Program program = MakeProgram();
  for (Storage &storage : program.storages) {
    storage.homes = {{storage.entry_count(), {{Home::host, kChunks}}}};
    storage.pools.clear();
  }
  auto run = [&](uint32_t seed) {
    RandomScheduler scheduler(seed);
    EngineOptions options;
    options.scheduler = &scheduler;
    options.trace = true;
    SetThreads(1);
    ParallelFor(1, 1, [](void *, int64_t, int64_t) {}, nullptr);
    size_t threads = ThreadCount();
    auto engine = Engine::Create(program, kKernels, nullptr, options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    EXPECT_EQ(ThreadCount(), threads);
    std::vector<uint64_t> in(kWords, 3), out(kWords);
    for (int64_t entry = 0; entry < 2; ++entry)
      for (int32_t chunk = 0; chunk < kChunks; ++chunk) {
        std::vector<float> values = RandomFloats(entry);
        for (int32_t storage : {kWeights, kGradient})
          EXPECT_TRUE(WriteChunk(**engine, storage, entry, chunk, values.data(), kChunk).ok());
      }
    driver = [](boa_context *context, int64_t step, int64_t) {
      UpdateAll(context, step);
      for (int64_t entry = 0; entry < 6; ++entry)
        boa_rt_release(context,
                       boa_rt_prefetch(context, kMemory, entry, 0, kChunks, BOA_DEVICE,
                                       /*zero=*/entry > 3),
                       0);
      for (int i = 0; i < 10; ++i)
        MixEntries(context, kMemory, 6, 7, i % 4);
    };
    const int64_t bytes = kWords * 8;
    for (int64_t step = 1; step <= 3; ++step) {
      absl::Status status = (*engine)->Run(Drive, step, 0, {{kMemory, 7, in.data(), bytes}},
                                           {{kMemory, 3, out.data(), bytes}});
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_GT(scheduler.choices, 50);
    std::string order;
    for (const TraceEvent &event : (*engine)->TakeTrace())
      absl::StrAppend(&order, event.name, " ");
    return std::make_pair(order, out);
  };
  auto first = run(1);
  bool differs = false;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    auto once = run(seed), again = run(seed);
    EXPECT_EQ(once, again) << seed;
    EXPECT_EQ(once.second, first.second) << seed;
    differs = differs || once.first != first.first;
  }
  EXPECT_TRUE(differs);
  SetThreads(0);
}

// The instruction set of kernels is said by name, or it is the processor's.
TEST(EngineCpu, InstructionSetIsNamed) {
  Program program = MakeProgram();
  for (Storage &storage : program.storages) {
    storage.homes = {{storage.entry_count(), {{Home::host, kChunks}}}};
    storage.pools.clear();
  }
  RandomScheduler scheduler(1);
  EngineOptions options;
  options.scheduler = &scheduler;
  const Isa best = UsedIsa();
  setenv("BOA_CPU", "abacus", 1);
  EXPECT_EQ(
      Engine::Create(program, kKernels, nullptr, options).status().message(),
      "BOA_CPU=abacus: expected \"baseline\", \"avx2\", \"avx512\", \"avx512_bf16\" or \"amx\"");
  setenv("BOA_CPU", "baseline", 1);
  EXPECT_TRUE(Engine::Create(program, kKernels, nullptr, options).ok());
  EXPECT_EQ(UsedIsa(), Isa::kBaseline);
  unsetenv("BOA_CPU");
  EXPECT_TRUE(UseIsa(IsaName(best)).ok());

  // So does the machine, but the environment's word is the last.
  program.machine.kernels = KernelSet::baseline;
  EXPECT_TRUE(Engine::Create(program, kKernels, nullptr, options).ok());
  EXPECT_EQ(UsedIsa(), Isa::kBaseline);
  setenv("BOA_CPU", IsaName(best), 1);
  EXPECT_TRUE(Engine::Create(program, kKernels, nullptr, options).ok());
  EXPECT_EQ(UsedIsa(), best);
  unsetenv("BOA_CPU");
  EXPECT_TRUE(UseIsa(IsaName(best)).ok());
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BOA_SANITIZED
#endif
#endif

#ifndef BOA_SANITIZED // they need more address space than there is
/// Creates the engine in a process that may have so much more memory; exits with 0
/// if that fails with this message.
void CreateWithin(const Program &program, int64_t bytes, const char *expected) {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  rlimit limit{rlim_t(pages * 4096 + bytes), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  absl::Status status = Engine::Create(program, kKernels, nullptr, {}).status();
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_AS, &limit);
  std::cerr << status.ToString() << std::endl;
  _exit(status.message() == expected ? 0 : 1);
}

// An engine that cannot be is a status, not a crash, and leaves no thread behind.
TEST(EngineLimits, WantOfMemoryOrThreadsIsAStatus) {
  // In a process of its own from its beginning: this one has stacks of threads that ended.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Program program = MakeProgram();
  for (Storage &storage : program.storages) {
    storage.homes = {{storage.entry_count(), {{Home::host, kChunks}}}};
    storage.pools.clear();
  }
  program.machine.threads = 1;
  EXPECT_EXIT(CreateWithin(program, 6 << 20,
                           "cannot start the engine's threads: Resource temporarily unavailable: "
                           "allow the process more threads (ulimit -u) or more memory"),
              testing::ExitedWithCode(0), "");
  program.storages[kMemory].bytes = 0;
  program.storages[kMemory].chunks = 1 << 30;
  program.storages[kMemory].homes[0].homes = {{Home::host, 1 << 30}};
  EXPECT_EXIT(CreateWithin(program, 64 << 20,
                           "cannot allocate the engine's memory outside of its arena: give the "
                           "process more memory or the program less"),
              testing::ExitedWithCode(0), "");
}
#endif

} // namespace
} // namespace boa::engine_test
