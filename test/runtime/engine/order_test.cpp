//===- order_test.cpp - When the device is given what ---------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a device that does nothing by itself: the test says what is over, and when that was.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/engine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <functional>
#include <memory>
#include <vector>

namespace boa {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Work::Kind;

constexpr int64_t kChunk = 4096;
enum StorageId : int32_t { kHost, kDevice };

class ByHand : public Device {
public:
  explicit ByHand(bool orders) : orders(orders) {}
  absl::Status Start(const int64_t (&)[2], Location, DeviceListener *new_listener) override {
    listener = new_listener;
    return absl::OkStatus();
  }
  void Submit(Work &work) override { given.push_back(&work); }
  void Cancel() override {}
  int64_t Now() const override { return 0; }
  bool OrdersKernels() const override { return orders; }
  std::string Describe() const override { return "by hand"; }

  /// What was given since the last call.
  std::vector<Work *> Take() { return std::exchange(given, {}); }
  void Done(Work *work, int64_t begin_ns, int64_t end_ns) {
    listener->Done(*work, begin_ns, end_ns, absl::OkStatus());
  }

private:
  const bool orders;
  DeviceListener *listener = nullptr;
  std::vector<Work *> given;
};

std::vector<Kind> Kinds(const std::vector<Work *> &works) {
  std::vector<Kind> kinds;
  for (const Work *work : works)
    kinds.push_back(work->kind);
  return kinds;
}

std::function<void(boa_context *)> body;
void Drive(boa_context *context, int64_t, int64_t) { body(context); }

class Order : public testing::Test {
protected:
  /// With one slot of each size in each memory.
  void Make(bool orders) {
    program = {};
    program.machine.memory = MemoryKind::separate;
    for (auto [name, tier] :
         {std::pair<const char *, Home::Tier>{"host", Home::host}, {"device", Home::device}}) {
      Storage &storage = program.storages.emplace_back();
      storage.name = storage.role = name;
      storage.entries = {2};
      storage.chunks = 1;
      storage.bytes = kChunk;
      storage.homes = {{2, {{tier, 1}}}};
      storage.pools = {{BOA_DEVICE, 1, 1}, {BOA_HOST, 1, 1}};
    }
    program.kernels = {{"kernel", {{true, true}}}, {"other", {{true, true}, {true, true}}}};
    auto owned = std::make_unique<ByHand>(orders);
    device = owned.get();
    auto made = Engine::Create(program, std::move(owned), nullptr, EngineOptions());
    ASSERT_TRUE(made.ok()) << made.status();
    engine = *std::move(made);
  }
  void Enqueue(std::function<void(boa_context *)> run) {
    body = std::move(run);
    engine->Enqueue(Drive, 1, 0);
  }

  Program program;
  ByHand *device = nullptr;
  std::unique_ptr<Engine> engine;
};

/// Doubles an entry that lives on the host.
void Round(boa_context *context, int64_t entry) {
  boa_buffer buffer = boa_rt_prefetch(context, kHost, entry, 0, 1, BOA_DEVICE, 0);
  boa_rt_launch(context, 0, 1, &buffer);
  boa_rt_offload(context, buffer, kHost, entry, 0, 1);
  boa_rt_release(context, buffer, 0);
}

// A device that does not order kernels is given what may begin.
TEST_F(Order, WhatMayBeginIsGiven) {
  Make(/*orders=*/false);
  Enqueue([](boa_context *context) { Round(context, 0); });
  for (Kind kind : {Kind::copy, Kind::kernel, Kind::copy}) {
    std::vector<Work *> given = device->Take();
    ASSERT_THAT(Kinds(given), ElementsAre(kind));
    EXPECT_THAT(given[0]->after, IsEmpty());
    device->Done(given[0], 0, 0);
  }
  EXPECT_TRUE(engine->Drain().ok());
}

// One that does is given a kernel with the copies that it needs, and is told which. No copy is
// given before its kernel is over: it would hold up others. No slot is, before it is free.
TEST_F(Order, KernelsAreGivenWithWhatTheyNeed) {
  Make(/*orders=*/true);
  Enqueue([](boa_context *context) {
    Round(context, 0);
    Round(context, 1);
  });
  for (int round = 0; round < 2; ++round) {
    std::vector<Work *> given = device->Take();
    ASSERT_THAT(Kinds(given), ElementsAre(Kind::copy, Kind::kernel));
    EXPECT_THAT(given[0]->after, IsEmpty());
    EXPECT_THAT(given[1]->after, ElementsAre(given[0]->sequence));
    device->Done(given[0], 0, 1);
    EXPECT_THAT(device->Take(), IsEmpty());
    device->Done(given[1], 1, 2);
    given = device->Take();
    ASSERT_THAT(Kinds(given), ElementsAre(Kind::copy));
    EXPECT_THAT(given[0]->after, IsEmpty());
    device->Done(given[0], 2, 3);
  }
  EXPECT_TRUE(engine->Drain().ok());
}

// What is over is not waited for; what the host still has to do is, as ever.
TEST_F(Order, KernelsWaitForTheHostAsEver) {
  Make(/*orders=*/true);
  Enqueue([](boa_context *context) {
    boa_buffer zeros = boa_rt_prefetch(context, kDevice, 0, 0, 1, BOA_DEVICE, /*zero=*/1);
    boa_buffer home = boa_rt_prefetch(context, kHost, 0, 0, 1, BOA_HOST, /*zero=*/1);
    boa_buffer other = boa_rt_prefetch(context, kHost, 0, 0, 1, BOA_DEVICE, 0);
    boa_buffer both[] = {zeros, other};
    boa_rt_launch(context, 1, 2, both);
    for (boa_buffer buffer : {zeros, home, other})
      boa_rt_release(context, buffer, 0);
  });
  // The host's zeros are the host's; the copy waits for them.
  std::vector<Work *> given = device->Take();
  ASSERT_THAT(Kinds(given), ElementsAre(Kind::zero, Kind::zero));
  device->Done(given[0], 0, 1);
  EXPECT_THAT(device->Take(), IsEmpty());
  device->Done(given[1], 0, 1);
  given = device->Take();
  ASSERT_THAT(Kinds(given), ElementsAre(Kind::copy, Kind::kernel));
  EXPECT_THAT(given[1]->after, ElementsAre(given[0]->sequence));
  for (Work *work : given)
    device->Done(work, 1, 2);
  EXPECT_TRUE(engine->Drain().ok());
}

// A kernel waited for a copy until that was over, then for the host: whether the device was given
// it before or after.
TEST_F(Order, WhatComputeWaitedForIsTold) {
  for (bool orders : {false, true}) {
    Make(orders);
    Enqueue([](boa_context *context) { Round(context, 0); });
    std::vector<Work *> given;
    for (int64_t ns : {0, 150, 300}) {
      for (Work *work : device->Take())
        given.push_back(work);
      ASSERT_FALSE(given.empty());
      device->Done(given.front(), ns, ns + 100);
      given.erase(given.begin());
    }
    EXPECT_TRUE(engine->Drain().ok());
    const Counters counters = engine->TakeCounters();
    EXPECT_NEAR(counters.compute_seconds * 1e9, 100, 1e-3);
    EXPECT_NEAR(counters.waited_copy * 1e9, 100, 1e-3);
    EXPECT_NEAR(counters.waited_launch * 1e9, 50, 1e-3);
  }
}

} // namespace
} // namespace boa
