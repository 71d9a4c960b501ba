//===- mpi_test.cpp - Open MPI, and machines without it -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/comm.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace boa {
namespace {

using testing::HasSubstr;

/// Nothing, or why this machine does not run ranks of Open MPI.
std::string Lacks() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE"))
    return "this is a rank already";
  if (std::system("mpirun --version >/dev/null 2>&1") != 0 || !dlopen("libmpi.so.40", RTLD_LAZY))
    return "Open MPI is not installed (openmpi-bin, libopenmpi3)";
  return "";
}

/// Runs these tests of this program as ranks of mpirun's; all that they print.
std::string RunRanks(int ranks, const std::string &tests, const std::string &variable) {
  // Open MPI is not built with sanitizers, and keeps memory to the end.
  const std::string command =
      absl::StrCat("env -u GTEST_OUTPUT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ",
                   "ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=ignore_noninstrumented_modules=1 ",
                   variable, " mpirun --oversubscribe --timeout 100 -n ", ranks, " ",
                   std::filesystem::read_symlink("/proc/self/exe").string(), " --gtest_filter='",
                   tests, "' 2>&1");
  FILE *const pipe = popen(command.c_str(), "r");
  std::string output;
  char part[4096];
  while (const size_t bytes = fread(part, 1, sizeof part, pipe))
    output.append(part, bytes);
  return absl::StrCat(output, "status ", pclose(pipe));
}

// The suite of all engines, in processes that end as they should.
TEST(Mpi, ConformsUnderMpirun) {
  if (const std::string lacks = Lacks(); !lacks.empty())
    GTEST_SKIP() << lacks;
  const std::string output = RunRanks(3, "*/Exchanges.*", "");
  EXPECT_THAT(output, testing::EndsWith("status 0"));
  EXPECT_THAT(output, HasSubstr("mpi (")) << "no test has run";
}

// After an error no process waits for another. Then mpirun says that they ended early.
TEST(Mpi, AbortsUnderMpirun) {
  if (const std::string lacks = Lacks(); !lacks.empty())
    GTEST_SKIP() << lacks;
  std::string folder = testing::TempDir() + "boa_mpi_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string output =
      RunRanks(3, "*/ExchangeErrors.Abort*", absl::StrCat("BOA_TEST_MEETING=", folder));
  // Each rank leaves a file when its waits have ended as they should.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 3) << output;
  EXPECT_THAT(output, testing::Not(HasSubstr("FAILED"))) << output;
  std::filesystem::remove_all(folder);
}

/// The error where BOA_MPI names this library.
std::string ErrorWith(const char *library) {
  setenv("BOA_MPI", library, 1);
  const std::string message(CreateMpiComm().status().message());
  unsetenv("BOA_MPI");
  return message;
}

TEST(Mpi, IsRefusedWhereItIsAbsent) {
  EXPECT_EQ(ErrorWith("libnone.so"),
            "libnone.so: cannot open shared object file: No such file or directory: install Open "
            "MPI (libopenmpi3), or use tcp");
  // Any library without Open MPI's handles.
  EXPECT_EQ(ErrorWith("libm.so.6"), "libm.so.6 is not Open MPI, perhaps MPICH: install Open MPI "
                                    "(libopenmpi3), or use tcp");
}

} // namespace
} // namespace boa
