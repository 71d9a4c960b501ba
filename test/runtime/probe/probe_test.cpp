//===- probe_test.cpp - Measuring a machine -------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers are those of this machine, so only their arithmetic is tested, and what is left behind.
//
//===----------------------------------------------------------------------===//
#include "runtime/probe/disk.h"
#include "runtime/probe/host.h"
#include "runtime/probe/machine_file.h"
#include "test/runtime/scratch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <filesystem>

namespace boa {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Figures, Median) {
  EXPECT_EQ(MedianOf({3, 1, 2}, "").value, 2);
  EXPECT_EQ(MedianOf({4, 1, 2, 3}, "").value, 2.5);
  // An outlier moves neither the value nor the scatter.
  const Figure figure = MedianOf({10, 11, 10, 9, 10, 1000, 10}, "how");
  EXPECT_EQ(figure.value, 10);
  EXPECT_NEAR(figure.scatter, 0.1, 1e-12);
  EXPECT_EQ(figure.how, "how");
}

TEST(Figures, Written) {
  EXPECT_EQ(FormatFigure(187.34e9, FigureUnit::operations), "187.3 GFLOP/s");
  EXPECT_EQ(FormatFigure(999.96e9, FigureUnit::operations), "1.000 TFLOP/s");
  EXPECT_EQ(FormatFigure(2500, FigureUnit::operations), "0.003 MFLOP/s");
  EXPECT_EQ(FormatFigure(2.1483e9, FigureUnit::speed), "2.148 GB/s");
  EXPECT_EQ(FormatFigure(812, FigureUnit::speed), "812 B/s");
  EXPECT_EQ(FormatFigure(22.5 * (1 << 30), FigureUnit::bytes), "22.50 GiB");
  EXPECT_EQ(FormatFigure(81234, FigureUnit::time), "81.23 us");
}

TEST(Figures, PathsThatNoTextHolds) {
  EXPECT_TRUE(CheckWritable("/mnt/a b").ok());
  for (const char *path : {"/mnt/\"a", "/mnt/a\nb", "/mnt/\x01", "/mnt/\xff"})
    EXPECT_FALSE(CheckWritable(path).ok()) << path;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(Memory, AsAFigure) {
  MemoryLeft left;
  left.total = int64_t{8} << 30;
  left.bytes = int64_t{6} << 30;
  EXPECT_EQ(FreeMemory(left).value, double(left.bytes));
  EXPECT_EQ(FreeMemory(left).how, "of 8.00 GiB");
  left.group = int64_t{7} << 30;
  EXPECT_EQ(FreeMemory(left).how, "of 8.00 GiB, limited by its control group");
}

//===----------------------------------------------------------------------===//
// Disks
//===----------------------------------------------------------------------===//

TEST(Disk, RatesAreOfTheSecondHalf) {
  const PhaseParts parts{{90, 90, 90, 90, 60, 30, 30, 30, 30, 30}, 0.5};
  EXPECT_EQ(parts.Late("").value, 60);
  EXPECT_NEAR(parts.Fall(), 1.0 / 3, 1e-12);
}

TEST(Disk, WhatIsDoubtful) {
  const PhaseParts steady{{1e9, 1e9, 1e9, 1e9}, 1}, falling{{3e9, 2e9, 1e9, 1e9}, 1},
      cached{{4e10, 4e10, 4e10, 4e10}, 1};
  EXPECT_THAT(DoubtsOf("/ssd", steady, steady), IsEmpty());
  EXPECT_THAT(DoubtsOf("/ssd", steady, falling),
              ElementsAre(HasSubstr("/ssd: writes fell to 33% of their first rate")));
  EXPECT_THAT(DoubtsOf("/ssd", cached, steady), ElementsAre(HasSubstr("/ssd: reads are faster")));
}

TEST(Disk, MeasuresAndLeavesNothing) {
  const Scratch scratch;
  DiskBudget budget;
  budget.seconds = 0.5;
  budget.most_bytes = budget.least_bytes = 32 << 20;
  std::vector<std::string> warnings;
  const absl::StatusOr<SsdFigures> figures = MeasureDisk(scratch.path(), budget, warnings);
  ASSERT_TRUE(figures.ok()) << figures.status();
  for (const Figure *figure : {&figures->read, &figures->write, &figures->both, &figures->latency})
    EXPECT_GT(figure->value, 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(Disk, Refusals) {
  const Scratch scratch;
  std::vector<std::string> warnings;
  EXPECT_EQ(MeasureDisk(scratch.path("none"), {}, warnings).status().code(),
            absl::StatusCode::kNotFound);
  // A disk that is too full, before a byte is written.
  DiskBudget budget;
  budget.most_bytes = budget.least_bytes = int64_t{1} << 60;
  const absl::Status full = MeasureDisk(scratch.path(), budget, warnings).status();
  EXPECT_THAT(std::string(full.message()), HasSubstr("a probe takes at most a quarter"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

} // namespace
} // namespace boa
