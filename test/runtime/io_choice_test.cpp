//===- io_choice_test.cpp - Tests of the choice of an I/O backend ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/io_fixture.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace boa {
namespace {

TEST(IoFactory, OptionAndEnvironmentChooseThreads) {
  TestFile file(kMiB);
  IoOptions options;
  options.prefer_threads = true;
  auto backend = CreateIoBackend({file.File()}, {}, nullptr, 0, options);
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ((*backend)->Describe().rfind("threads", 0), 0u);
  setenv("BOA_IO", "threads", 1);
  backend = CreateIoBackend({file.File()}, {}, nullptr, 0, {});
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ((*backend)->Describe().rfind("threads", 0), 0u);
  setenv("BOA_IO", "carrier pigeons", 1);
  EXPECT_TRUE(absl::IsInvalidArgument(CreateIoBackend({file.File()}, {}, nullptr, 0, {}).status()));
  unsetenv("BOA_IO");
  EXPECT_TRUE(CreateIoBackend({file.File()}, {}, nullptr, 0, {}).ok());
}

// Where there is no ring there are threads, and what is printed at start says
// why; whoever asks for io_uring by name gets an error.
TEST(IoFactory, ThreadsStandInForARefusedRing) {
  for (int error : {EPERM, ENOSYS, ENOMEM, EMFILE}) {
    TestFile file(kMiB);
    IoOptions options;
    options.faults.ring_error = error;
    for (const char *wanted : {"", "io_uring"}) {
      setenv("BOA_IO", wanted, 1);
      auto backend = CreateIoBackend({file.File()}, {}, nullptr, 0, options);
      unsetenv("BOA_IO");
      const std::string why = std::string("the kernel refuses io_uring: ") + std::strerror(error);
      if (*wanted) {
        EXPECT_EQ(backend.status().message(), why);
        continue;
      }
      ASSERT_TRUE(backend.ok()) << backend.status();
      EXPECT_EQ((*backend)->Describe(), "threads (8), " + why);
      AlignedBuffer buffer(kPage);
      buffer.Fill(1);
      Waiter waiter;
      (*backend)->Submit({true, 0, 0, kPage, buffer.data(), waiter.Done()});
      EXPECT_EQ(waiter.Wait(), absl::OkStatus());
    }
  }
}

} // namespace
} // namespace boa
