//===- simulated_test.cpp - Time that is virtual --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The simulated device keeps the times that follow from its rates by hand. At the end: engines that
// are dropped.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/simulated.h"
#include "runtime/engine/engine.h"

#include "test/runtime/engine/slow_device.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace boa {
namespace {

constexpr int64_t kChunk = 1 << 20;

enum StorageId : int32_t { kWeights, kGradient, kHostWeights };

std::function<void(boa_context *)> body;
void Drive(boa_context *context, int64_t, int64_t) { body(context); }

/// A thousand operations or bytes in a microsecond of everything, on paths of so many
/// bytes each second.
Program MakeProgram(std::vector<SsdSettings> paths, bool separate = false, int32_t slots = 64) {
  Program program;
  program.machine.device = DeviceKind::cuda;
  program.machine.memory = separate ? MemoryKind::separate : MemoryKind::unified;
  for (int64_t *rate :
       {&program.machine.compute.f32, &program.machine.device_bandwidth.f32,
        &program.machine.to_device, &program.machine.to_host, &program.machine.optimizer})
    *rate = 1000000000;
  program.machine.ssd = std::move(paths);
  auto add = [&](const char *name, Home::Tier tier) {
    Storage &storage = program.storages.emplace_back();
    storage.name = storage.role = name;
    storage.entries = {512};
    storage.chunks = 1;
    storage.bytes = kChunk;
    storage.homes = {{512, {{tier, 1}}}};
    storage.pools = {{BOA_DEVICE, 1, slots}, {BOA_HOST, 1, slots}};
  };
  add("weights", Home::ssd);
  add("gradient", Home::device);
  add("host_weights", Home::host);
  program.kernels = {
      {"compute", {{true, true}}, 0, {{NumberFormat::f32, {5e6, 1e6, /*product_flops=*/5e6}}}},
      {"memory", {{true, true}}, 0, {{NumberFormat::f32, {1e6, 3e6, /*product_flops=*/1e6}}}}};
  return program;
}

struct Simulated {
  explicit Simulated(const Program &program) : placement(CreateSimulatedExtents(program)) {
    auto made = CreateSimulatedDevice(program);
    EXPECT_TRUE(made.ok()) << made.status();
    device = made->get();
    EngineOptions options;
    options.trace = true;
    auto created = Engine::Create(program, *std::move(made), placement.get(), options);
    EXPECT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }
  /// The nanoseconds that it takes, transfers included.
  int64_t Run(std::function<void(boa_context *)> run) {
    body = std::move(run);
    const int64_t begin = engine->Now();
    absl::Status status = engine->Run(Drive, 1, 0);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(engine->Drain().ok());
    return engine->Now() - begin;
  }
  std::unique_ptr<ChunkExtents> placement;
  SimulatedDevice *device = nullptr;
  std::unique_ptr<Engine> engine;
};

/// So long a chunk takes at a rate.
int64_t ChunkNs(double rate) { return int64_t(double(kChunk) / rate * 1e9); }

// A kernel takes its operations or its bytes, whichever is more; kernels follow one
// another.
TEST(Simulated, KernelsTakeWhatTheyCompute) {
  Program program = MakeProgram({{"a", 1000000000, 1000000000}});
  Simulated simulated(program);
  auto launch = [](int32_t kernel, int times) {
    return [=](boa_context *context) {
      boa_buffer buffer = boa_rt_prefetch(context, kGradient, 0, 0, 1, BOA_DEVICE, 0);
      for (int i = 0; i < times; ++i)
        boa_rt_launch(context, kernel, 1, &buffer);
      boa_rt_release(context, buffer, 0);
    };
  };
  EXPECT_EQ(simulated.Run(launch(0, 1)), 5000000);
  EXPECT_EQ(simulated.Run(launch(0, 3)), 15000000);
  EXPECT_EQ(simulated.Run(launch(1, 2)), 6000000);
  // Products of bf16, four of the five million operations, take what the rest does, unless
  // they have a rate of their own.
  program.kernels[0].costs[NumberFormat::f32].product_flops = 1e6;
  program.kernels[0].costs[NumberFormat::bf16].product_flops = 4e6;
  EXPECT_EQ(Simulated(program).Run(launch(0, 1)), 5000000);
  program.machine.compute.bf16 = 8000000000;
  EXPECT_EQ(Simulated(program).Run(launch(0, 1)), 1500000);
  // So does attention.
  program.kernels[0].costs[NumberFormat::f32].product_flops = 0;
  program.kernels[0].costs[NumberFormat::f32].attention_flops = 1e6;
  program.kernels[0].costs[NumberFormat::bf16].attention_flops = 4e6;
  EXPECT_EQ(Simulated(program).Run(launch(0, 1)), 1500000 + 500000);
  program.machine.compute_attention.f32 = 2000000000;
  program.machine.compute_attention.bf16 = 4000000000;
  EXPECT_EQ(Simulated(program).Run(launch(0, 1)), 500000 + 1000000 + 500000);
  // What is between products takes its bytes on top, whatever it computes.
  program.kernels[0].costs[NumberFormat::f32].bytes += 7e6;
  program.kernels[0].costs[NumberFormat::f32].elementwise_bytes = 7e6;
  EXPECT_EQ(Simulated(program).Run(launch(0, 1)), 2000000 + 7000000);
  program.kernels[0].costs[NumberFormat::bf16].bytes = 4e6;
  program.kernels[0].costs[NumberFormat::bf16].elementwise_bytes = 4e6;
  program.machine.device_bandwidth.bf16 = 500000000;
  EXPECT_EQ(Simulated(program).Run(launch(0, 1)), 2000000 + 7000000 + 8000000);
}

/// Reads so many entries, with a kernel on each.
std::function<void(boa_context *)> Stream(int64_t entries, bool write) {
  return [=](boa_context *context) {
    for (int64_t entry = 0; entry < entries; ++entry) {
      boa_buffer buffer = boa_rt_prefetch(context, kWeights, entry, 0, 1, BOA_DEVICE, 0);
      boa_rt_launch(context, 0, 1, &buffer);
      if (write)
        boa_rt_offload(context, buffer, kWeights, entry, 0, 1);
      boa_rt_release(context, buffer, 0);
    }
  };
}

// Reads run beside kernels; what compute waited for is what it waited for.
TEST(Simulated, TransfersRunBesideKernels) {
  const Program program = MakeProgram({{"a", 100000000, 100000000, 0, 70000}});
  Simulated simulated(program);
  const int64_t chunk = ChunkNs(1e8), latency = 70000;
  EXPECT_NEAR(simulated.Run(Stream(10, false)), 10 * chunk + latency + 5000000, 20);
  const Counters counters = simulated.engine->TakeCounters();
  EXPECT_NEAR(counters.waited_read * 1e9, double(10 * chunk + latency - 9 * 5000000), 20);
  EXPECT_EQ(counters.moved.read.at("weights"), 10 * kChunk);
  EXPECT_EQ(counters.waited_launch, 0);
  // Written beside the reads of those behind it.
  EXPECT_NEAR(simulated.Run(Stream(10, true)), 11 * chunk + 2 * latency + 5000000, 20);
}

// Where reads and writes share what a path has, each gets its share.
TEST(Simulated, WhatIsSharedIsShared) {
  Program program = MakeProgram({{"a", 1000000000, 1000000000, /*both=*/1000000000}});
  program.kernels[0].costs = {};
  Simulated shared(program);
  program.machine.ssd[0].both = 0;
  Simulated apart(program);
  const double alone = double(apart.Run(Stream(100, true)));
  EXPECT_NEAR(double(shared.Run(Stream(100, true))) / alone, 2.0, 0.05);
  // The host's memory: twice for what an SSD moves.
  program.machine.host_bandwidth = 1000000000;
  Simulated narrow(program);
  EXPECT_NEAR(double(narrow.Run(Stream(100, true))) / alone, 4.0, 0.1);
}

// Paths of unequal speed deliver what they have together, as none waits for another.
TEST(Simulated, PathsOfUnequalSpeedDeliverTheirSum) {
  std::vector<SsdSettings> paths;
  int64_t sum = 0;
  for (int64_t speed : {7, 7, 6, 5, 5, 3, 2, 1}) {
    paths.push_back({"path", speed * 1000000000, 4000000000, 0, 80000});
    sum += speed;
  }
  for (SsdSettings &path : paths)
    path.write = path.read;
  Program program = MakeProgram(paths);
  program.kernels[0].costs = {};
  Simulated simulated(program);
  const double ns = double(simulated.Run(Stream(512, false)));
  EXPECT_GT(512.0 * double(kChunk) / ns, 0.97 * double(sum));
}

// With two memories what lives on the host is copied to the device, beside kernels.
TEST(Simulated, CopiesHaveLinksOfTheirOwn) {
  const Program program = MakeProgram({{"a", 1, 1}}, /*separate=*/true);
  Simulated simulated(program);
  const int64_t ns = simulated.Run([](boa_context *context) {
    for (int64_t entry = 0; entry < 10; ++entry) {
      boa_buffer buffer = boa_rt_prefetch(context, kHostWeights, entry, 0, 1, BOA_DEVICE, 0);
      boa_rt_launch(context, 0, 1, &buffer);
      boa_rt_offload(context, buffer, kHostWeights, entry, 0, 1);
      boa_rt_release(context, buffer, 0);
    }
  });
  EXPECT_NEAR(ns, 10 * 5000000 + 2 * ChunkNs(1e9), 40);
  std::map<std::string, int64_t> bytes;
  for (const LinkUse &use : simulated.device->TakeUse(1))
    bytes[use.name] = use.bytes;
  EXPECT_EQ(bytes["to device"], 10 * kChunk);
  EXPECT_EQ(bytes["to host"], 10 * kChunk);
}

// Copies both ways at once take longer where the link has less than both of its directions.
TEST(Simulated, CopiesBothWaysShareTheLink) {
  Program program = MakeProgram({{"a", 1, 1}}, /*separate=*/true);
  program.kernels[0].costs = {};
  auto run = [&] {
    return Simulated(program).Run([](boa_context *context) {
      for (int64_t entry = 0; entry < 100; ++entry) {
        boa_buffer buffer = boa_rt_prefetch(context, kHostWeights, entry, 0, 1, BOA_DEVICE, 0);
        boa_rt_launch(context, 0, 1, &buffer);
        boa_rt_offload(context, buffer, kHostWeights, entry, 0, 1);
        boa_rt_release(context, buffer, 0);
      }
    });
  };
  EXPECT_NEAR(double(run()), 101.0 * double(ChunkNs(1e9)), 1e4);
  program.machine.both_ways = 1000000000;
  EXPECT_NEAR(double(run()), 200.0 * double(ChunkNs(1e9)), 1e4);
}

// A CPU's kernels go slower while SSDs move bytes, which its threads also sum.
TEST(Simulated, TransfersTakeProcessorsFirst) {
  Program program = MakeProgram({{"a", 1000000000, 1000000000}});
  program.machine.device = DeviceKind::cpu;
  // Each kernel takes as long as the read of its chunk.
  program.kernels[0].costs = {{NumberFormat::f32, {0, 0, /*product_flops=*/double(kChunk)}}};
  const double apart = double(Simulated(program).Run(Stream(100, false)));
  EXPECT_NEAR(apart, 101.0 * double(ChunkNs(1e9)), 1e4);
  program.machine.checksum = 8000000000;
  program.machine.transfers = 4000000000;
  // Reads take a quarter of the processors while they last.
  EXPECT_NEAR(double(Simulated(program).Run(Stream(100, false))) / apart, 1.25, 0.02);
  // Kernels that take half as long leave reads at full speed, which take the rest of the time.
  program.kernels[0].costs[NumberFormat::f32].product_flops /= 2;
  EXPECT_NEAR(double(Simulated(program).Run(Stream(100, false))) / apart, 1.0, 0.01);
  // More than half of the processors is not theirs: reads go at half speed.
  program.machine.transfers = 0;
  program.machine.checksum = 1000000000;
  EXPECT_NEAR(double(Simulated(program).Run(Stream(100, false))) / apart, 2.0, 0.02);
}

// SSDs that reach the device's memory take what leads there, which copies take, too, and nothing
// of the host's memory.
TEST(Simulated, DirectTransfersShareTheWayToTheDevice) {
  Program program = MakeProgram({{"a", 4000000000, 4000000000}}, /*separate=*/true);
  program.kernels[0].costs = {};
  program.machine.host_bandwidth = 1000000000;
  auto chunks = [&](std::function<void(boa_context *)> run) {
    return double(Simulated(program).Run(std::move(run))) / double(ChunkNs(1e9));
  };
  auto copies = [](boa_context *context) {
    for (int64_t entry = 0; entry < 100; ++entry)
      boa_rt_release(
          context, boa_rt_prefetch(context, kHostWeights, entry, 0, 1, BOA_DEVICE, /*zero=*/0), 0);
  };
  // Three times in the host's memory: read, summed, copied.
  EXPECT_NEAR(chunks(Stream(100, false)), 300, 3);
  program.machine.direct = true;
  EXPECT_NEAR(chunks(Stream(100, false)), 100, 1);
  EXPECT_NEAR(chunks(Stream(100, true)), 101, 1);
  EXPECT_NEAR(chunks([&](boa_context *context) {
                copies(context);
                Stream(100, false)(context);
              }),
              200, 2);
  // Filling the device's memory with zeros takes nothing of the way there.
  program.machine.device_bandwidth.f32 = 1000000000;
  EXPECT_NEAR(chunks([&](boa_context *context) {
                for (int64_t entry = 0; entry < 100; ++entry)
                  boa_rt_release(
                      context,
                      boa_rt_prefetch(context, kGradient, entry, 0, 1, BOA_DEVICE, /*zero=*/1), 0);
                Stream(100, false)(context);
              }),
              100, 2);
  // A slower SSD is what it waits for.
  program.machine.ssd[0].read = 500000000;
  EXPECT_NEAR(chunks(Stream(100, false)), 200, 2);
}

// What the device's queues fill is no work of the host's optimizer.
TEST(Simulated, FillsOfTheDeviceAreNotTheOptimizers) {
  auto run = [](boa_context *context) {
    boa_buffer zeros = boa_rt_prefetch(context, kGradient, 0, 0, 1, BOA_DEVICE, /*zero=*/1);
    boa_buffer other = boa_rt_create(context, kGradient, 1, 0, 1, BOA_DEVICE);
    boa_rt_copy(context, zeros, other, 0, 1);
    boa_rt_release(context, zeros, 0);
    boa_rt_release(context, other, 0);
  };
  for (bool separate : {false, true}) {
    const Program program = MakeProgram({{"a", 1, 1}}, separate);
    Simulated simulated(program);
    simulated.Run(run);
    const double seconds = simulated.engine->TakeCounters().optimizer_seconds;
    EXPECT_EQ(seconds > 0, !separate) << seconds;
    for (const TraceEvent &event : simulated.engine->TakeTrace())
      EXPECT_EQ(event.row == TraceEvent::Row::optimizer, !separate) << event.name;
  }
}

// A transfer of four segments makes way after its first.
TEST(Simulated, AMoreUrgentTransferPassesAtTheEndOfASegment) {
  struct Ends : DeviceListener {
    std::map<int64_t, int64_t> of; // by priority
    int64_t moved = 0;
    void Done(const Work &work, int64_t, int64_t end_ns, absl::Status) override {
      of[work.priority] = end_ns;
    }
    void Moved(const Work &, int32_t, int64_t bytes, int64_t, int64_t) override { moved += bytes; }
    void Wake() override {}
  } ends;
  const Program program = MakeProgram({{"a", 1 << 30, 1 << 30}});
  auto device = CreateSimulatedDevice(program);
  ASSERT_TRUE(device.ok()) << device.status();
  const int64_t bytes[2] = {};
  ASSERT_TRUE((*device)->Start(bytes, {}, &ends).ok());
  Work large, urgent;
  large.kind = urgent.kind = Work::Kind::read;
  large.storage = urgent.storage = kWeights;
  large.buffers = urgent.buffers = {{BOA_DEVICE, 0}};
  large.extents.assign(4, {0, 0});
  urgent.extents.assign(1, {0, 0});
  large.priority = 2;
  urgent.priority = 1;
  (*device)->Submit(large);
  (*device)->Submit(urgent);
  while ((*device)->Advance()) {
  }
  EXPECT_NEAR(double(ends.of[1]), 2e9 / 1024, 10);
  EXPECT_NEAR(double(ends.of[2]), 5e9 / 1024, 10);
  EXPECT_EQ(ends.moved, 5 * kChunk);
  EXPECT_EQ((*device)->TakeUse(0)[4].bytes, 5 * kChunk);
}

// The same program takes the same time, to the nanosecond, in all its parts.
TEST(Simulated, TimeIsReproducible) {
  auto run = [] {
    const Program program =
        MakeProgram({{"a", 313131313, 171717171, 400000000, 70001}, {"b", 99999999, 77777777}},
                    false, /*slots=*/3);
    Simulated simulated(program);
    std::string all = std::to_string(simulated.Run(Stream(300, true)));
    for (const TraceEvent &event : simulated.engine->TakeTrace())
      all += absl::StrCat(" ", event.name, " ") + std::to_string(event.begin_ns) + "-" +
             std::to_string(event.end_ns);
    return all;
  };
  EXPECT_EQ(run(), run());
}

TEST(Simulated, RatesThatAreMissingAreNamed) {
  Program program = MakeProgram({{"/mnt/a", 1, 0}}, /*separate=*/true);
  program.machine.compute.f32 = program.machine.device_bandwidth.f32 = program.machine.to_device =
      0;
  program.machine.to_host = program.machine.optimizer = 0;
  program.machine.memory = MemoryKind::separate;
  program.machine.name = "box";
  EXPECT_EQ(CreateSimulatedDevice(program).status().message(),
            "cannot simulate machine `box`: it does not say how fast it is; write in it, or give "
            "with --set machine.device.compute=..., say:\n"
            "  device { compute = 300 TFLOP/s }, what kernels compute\n"
            "  device { bandwidth = 2 TB/s }, what they read and write in memory\n"
            "  host { optimizer = 50 GB/s }, what updates read and write in memory\n"
            "  device { to_device = 25 GB/s }, what is copied to its memory\n"
            "  device { to_host = 25 GB/s }, what is copied from its memory\n"
            "  ssd \"/mnt/a\" { write = 5 GB/s }");
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

constexpr std::chrono::milliseconds kWhile(10);

// The last transfer begins when another's slot is free, on that one's thread. It is over before
// that thread has returned to the engine, which waits for both.
TEST(EngineEnd, WhoGivesWorkReturnsFirst) {
  const Program program = MakeProgram({{"a", 1000000000, 1000000000}}, false, /*slots=*/1);
  auto placement = CreateSimulatedExtents(program);
  auto engine = Engine::Create(program, std::make_unique<SlowDevice>(kWhile, /*kept=*/4),
                               placement.get(), EngineOptions());
  ASSERT_TRUE(engine.ok()) << engine.status();
  body = Stream(4, false);
  EXPECT_TRUE((*engine)->Run(Drive, 1, 0).ok());
}

// An engine that is dropped in the middle of a run waits for what is under way: memory,
// kernels and files are not taken from under it.
TEST(EngineEnd, WhatIsUnderWayEndsFirst) {
  const Program program = MakeProgram({{"a", 1000000000, 1000000000}});
  auto placement = CreateSimulatedExtents(program);
  auto engine = Engine::Create(program, std::make_unique<SlowDevice>(kWhile), placement.get(),
                               EngineOptions());
  ASSERT_TRUE(engine.ok()) << engine.status();
  body = Stream(4, false);
  (*engine)->Enqueue(Drive, 1, 0);
}

} // namespace
} // namespace boa
