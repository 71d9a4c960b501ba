//===- order_test.cpp - What waits for what between streams ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While a call of the driver waits, which may be long, all other streams go on, but that the
// event that it was given is used for nothing else. In place of that call is one of ours.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/order.h"
#include "test/runtime/cuda/fixture.h"

#include <functional>
#include <future>

namespace boa::cuda_test {
namespace {

using namespace std::chrono_literals;

std::function<void()> meanwhile; // in cuStreamWaitEvent

class OrderTest : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    auto opened = cuda::Driver::Open();
    ASSERT_TRUE(opened.ok()) << opened.status();
    driver = *std::move(opened);
    driver->StreamWaitEvent.address = [](cuda::Stream, cuda::Event, unsigned) -> cuda::Result {
      meanwhile();
      return cuda::kSuccess;
    };
    before.sequence = 1;
    after.sequence = 2;
    after.after = {1};
    order.Add(before, stream(1));
    order.Enqueued(before, reinterpret_cast<cuda::Event>(1));
    order.Add(after, stream(2));
  }
  static cuda::Stream stream(uintptr_t number) { return reinterpret_cast<cuda::Stream>(number); }

  std::unique_ptr<cuda::Driver> driver;
  cuda::Order order;
  Work before, after;
};

TEST_F(OrderTest, NobodyWaitsForTheDriversCall) {
  RecordProperty("depends_on_time", "ten seconds for another thread");
  std::future<void> others;
  bool went_on = false;
  meanwhile = [&] {
    others = std::async(std::launch::async, [&] {
      Work other;
      other.sequence = 3;
      order.Add(other, stream(3));
      order.Enqueued(other, reinterpret_cast<cuda::Event>(3));
      order.Remove(3);
    });
    went_on = others.wait_for(10s) == std::future_status::ready;
  };
  EXPECT_TRUE(order.Await(*driver, after, stream(2)).ok());
  EXPECT_TRUE(went_on);
}

TEST_F(OrderTest, AnEventIsTheCallsUntilItReturns) {
  std::future<void> removed;
  bool was_removed = true;
  meanwhile = [&] {
    removed = std::async(std::launch::async, [&] { order.Remove(1); });
    was_removed = removed.wait_for(50ms) == std::future_status::ready;
  };
  EXPECT_TRUE(order.Await(*driver, after, stream(2)).ok());
  EXPECT_FALSE(was_removed);
  removed.get();
  order.AwaitRemoved(after);
}

} // namespace
} // namespace boa::cuda_test
