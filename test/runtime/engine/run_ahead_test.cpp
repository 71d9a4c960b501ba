//===- run_ahead_test.cpp - How far the driver may be ahead ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What commands take while they wait is promised: the graph counts no less than it
// allocates, and the engine holds up the driver before that is more than promised.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/simulated.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/graph.h"

#include "gtest/gtest.h"

#include <functional>
#include <malloc.h>

namespace boa {
namespace {

enum StorageId : int32_t { kWeights, kMomentum, kGradient };

/// Layers of so many chunks of 64 KiB on a slow path, with slots for `slots` of them.
Program MakeProgram(int32_t chunks, int32_t slots, bool separate) {
  Program program;
  program.machine.device = DeviceKind::cuda;
  program.machine.memory = separate ? MemoryKind::separate : MemoryKind::unified;
  for (int64_t *rate :
       {&program.machine.compute.f32, &program.machine.device_bandwidth.f32,
        &program.machine.to_device, &program.machine.to_host, &program.machine.optimizer})
    *rate = 1000000000;
  program.machine.ssd = {{"a", 100000000, 100000000}};
  auto add = [&](const char *name) {
    Storage &storage = program.storages.emplace_back();
    storage.name = storage.role = name;
    storage.entries = {500};
    storage.chunks = chunks;
    storage.bytes = int64_t{chunks} << 16;
    storage.homes = {{500, {{Home::ssd, chunks}}}};
    storage.pools = {
        {BOA_DEVICE, chunks, slots}, {BOA_HOST, chunks, slots}, {BOA_HOST, 1, slots * chunks}};
  };
  add("weights");
  add("momentum");
  add("gradients");
  program.kernels = {
      {"kernel", {{true, true}, {true, true}}, 0, {{NumberFormat::f32, {1e6, 1e6, 1e6}}}}};
  Group &group = program.groups.emplace_back();
  group.name = "group";
  group.elements = int64_t{chunks} << 14;
  group.chunk_elements = 1 << 14;
  group.states = {kMomentum};
  program.optimizer = {"sgd", {{"momentum", "f32"}}, 1};
  return program;
}

/// The commands of a layer: a kernel on all of it, then an update of each chunk.
void Layer(Graph &graph, int64_t layer, int32_t chunks) {
  boa_buffer whole[2] = {graph.Open(kWeights, layer, 0, chunks, BOA_DEVICE, true, false),
                         graph.Open(kGradient, layer, 0, chunks, BOA_DEVICE, true, false)};
  graph.Launch(0, 2, whole);
  graph.Offload(whole[1], kGradient, layer, 0, chunks);
  graph.Release(whole[0], false);
  graph.Release(whole[1], false);
  for (int32_t c = 0; c < chunks; ++c) {
    boa_buffer chunk[3];
    for (int32_t storage : {kWeights, kMomentum, kGradient})
      chunk[storage] = graph.Open(storage, layer, c, 1, BOA_HOST, true, false);
    graph.Update(0, c, 1, {chunk[kWeights], 0, chunk[kGradient], chunk[kMomentum]});
    for (int32_t storage : {kWeights, kMomentum})
      graph.Offload(chunk[storage], storage, layer, c, 1);
    for (boa_buffer handle : chunk)
      graph.Release(handle, false);
  }
}

int64_t Allocated() {
  const auto info = mallinfo2();
  return int64_t(info.uordblks + info.hblkhd);
}

// Of wide layers and narrow ones, in one memory and in two.
TEST(RunAhead, CountsNoLessThanItAllocates) {
  if (Allocated() == 0)
    GTEST_SKIP() << "a sanitizer allocates";
  for (auto [separate, orders] : {std::pair(false, false), {true, false}, {true, true}})
    for (int32_t chunks : {1, 4, 1000}) {
      SCOPED_TRACE(testing::Message() << chunks << " chunks" << (separate ? ", two memories" : "")
                                      << (orders ? ", which the device orders" : ""));
      const Program program = MakeProgram(chunks, 1, separate);
      auto places = CreateSimulatedExtents(program);
      Graph graph(program, places.get(), orders);
      graph.BeginRun(0);
      // The first fill tables that stay.
      Layer(graph, 0, chunks);
      const int64_t allocated = Allocated(), counted = graph.IncompleteBytes();
      for (int64_t layer = 1; layer < 2 + 1000 / chunks && layer < 500; ++layer)
        Layer(graph, layer, chunks);
      ASSERT_TRUE(graph.status().ok()) << graph.status();
      const int64_t takes = Allocated() - allocated, counts = graph.IncompleteBytes() - counted;
      EXPECT_LE(takes, counts) << graph.Incomplete();
      EXPECT_GE(2 * takes, counts) << graph.Incomplete(); // nor much more
    }
}

/// Does all that was issued.
void Finish(Graph &graph) {
  graph.EndRun();
  for (std::vector<Work *> ready; graph.Incomplete() > 0; ready.clear()) {
    graph.TakeReady(ready);
    ASSERT_FALSE(ready.empty());
    for (const Work *work : ready)
      graph.Complete(*work, 0, 0);
  }
}

// What a wide command had is not kept wherever one ever was: that would be megabytes. What the
// allocator keeps of its own is counted, too.
TEST(RunAhead, TakesNoMoreInALongRun) {
  if (Allocated() == 0)
    GTEST_SKIP() << "a sanitizer allocates";
  constexpr int32_t kChunks = 1000, kRounds = 200;
  const Program program = MakeProgram(kChunks, /*slots=*/1, /*separate=*/false);
  auto places = CreateSimulatedExtents(program);
  Graph graph(program, places.get());
  // Other commands first, and so in another place of the tables.
  auto round = [&](int others) {
    graph.BeginRun(0);
    for (int i = 0; i < others; ++i)
      graph.Release(graph.Open(kMomentum, 0, 0, 1, BOA_HOST, true, false), false);
    boa_buffer whole[2] = {graph.Open(kWeights, 0, 0, kChunks, BOA_DEVICE, true, false), 0};
    graph.Launch(0, 2, whole);
    graph.Release(whole[0], false);
    Finish(graph);
  };
  round(kRounds);
  const int64_t allocated = Allocated();
  for (int others = 0; others < kRounds; ++others)
    round(others);
  ASSERT_TRUE(graph.status().ok()) << graph.status();
  EXPECT_LE(Allocated() - allocated, 128 << 10);
}

//===----------------------------------------------------------------------===//
// The engine
//===----------------------------------------------------------------------===//

std::function<void(boa_context *)> body;
void Drive(boa_context *context, int64_t, int64_t) { body(context); }

/// An engine in virtual time, its driver, and what is known when the driver's last word came.
struct Simulated {
  Simulated(const Program &program, int64_t run_ahead)
      : placement(CreateSimulatedExtents(program)) {
    auto device = CreateSimulatedDevice(program);
    EXPECT_TRUE(device.ok()) << device.status();
    EngineOptions options;
    options.run_ahead = run_ahead;
    auto created = Engine::Create(program, *std::move(device), placement.get(), options);
    EXPECT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
    const int32_t chunks = program.storages[kWeights].chunks;
    const int64_t layers = 500 / chunks;
    body = [this, layers, chunks](boa_context *context) {
      for (int64_t layer = 0; layer < layers; ++layer) {
        boa_buffer whole = boa_rt_prefetch(context, kWeights, layer, 0, chunks, BOA_DEVICE, 0);
        const boa_buffer both[] = {whole, 0};
        boa_rt_launch(context, 0, 2, both);
        boa_rt_offload(context, whole, kWeights, layer, 0, chunks);
        boa_rt_release(context, whole, 0);
      }
      last_word = engine->Now();
    };
  }
  std::unique_ptr<ChunkExtents> placement;
  std::unique_ptr<Engine> engine;
  int64_t last_word = 0;
};

// A driver that is held up comes to the same, with no more than was promised.
TEST(RunAhead, HoldsUpTheDriver) {
  const Program program = MakeProgram(/*chunks=*/1, /*slots=*/4, /*separate=*/false);
  int64_t expected = 0;
  for (int64_t run_ahead : {1 << 30, 64 << 10}) {
    Simulated simulated(program, run_ahead);
    Engine &engine = *simulated.engine;
    const int64_t first = engine.Enqueue(Drive, 1, 0), second = engine.Enqueue(Drive, 2, 0);
    // Whoever comes late is told when it was.
    ASSERT_TRUE(engine.Wait(first).ok());
    const int64_t end = engine.EndOf(first);
    EXPECT_EQ(engine.Now() > end, run_ahead == 64 << 10);
    ASSERT_TRUE(engine.Wait(second).ok());
    ASSERT_TRUE(engine.Drain().ok());
    if (expected == 0)
      expected = engine.Now();
    EXPECT_EQ(engine.Now(), expected);
    EXPECT_NEAR(double(end), double(expected) / 2, double(expected) / 50);
    // The driver's last word comes at once, or when most of it is done.
    EXPECT_EQ(simulated.last_word > expected / 2, run_ahead == 64 << 10);
    EXPECT_EQ(engine.PeakRunAheadBytes() <= 64 << 10, run_ahead == 64 << 10);
  }
}

// What is promised suffices, and is kept to, whatever the size of layers.
TEST(RunAhead, IsThatOfTwoLayers) {
  for (int32_t chunks : {1, 20, 100})
    for (bool separate : {false, true}) {
      SCOPED_TRACE(testing::Message() << chunks << " chunks" << (separate ? ", two memories" : ""));
      const Program program = MakeProgram(chunks, /*slots=*/2, separate);
      int64_t expected = 0;
      for (int64_t run_ahead : {1 << 30, 0}) {
        Simulated simulated(program, run_ahead);
        for (int64_t step = 1; step <= 16; ++step)
          simulated.engine->Enqueue(Drive, step, 0);
        ASSERT_TRUE(simulated.engine->Drain().ok());
        const int64_t peak = simulated.engine->PeakRunAheadBytes();
        if (run_ahead == 0) {
          EXPECT_LE(peak, RunAheadBytes(program));
          EXPECT_GT(peak, RunAheadBytes(program) / 2);
          EXPECT_EQ(simulated.engine->Now(), expected);
        } else {
          EXPECT_GT(peak, RunAheadBytes(program));
        }
        expected = simulated.engine->Now();
      }
    }
}

} // namespace
} // namespace boa
