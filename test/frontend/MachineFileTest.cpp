//===- MachineFileTest.cpp - What a probe writes is read back -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/probe/machine_file.h"
#include "test/frontend/Fixture.h"

#include "gtest/gtest.h"

namespace boa::frontend {
namespace {

MachineFigures makeFigures() {
  MachineFigures figures;
  KernelFigures &f32 = figures.formats[NumberFormat::f32],
                &bf16 = figures.formats[NumberFormat::bf16];
  figures.kernels = "avx2";
  figures.names_kernels = true;
  double value = 123.4e9;
  for (Figure *figure :
       {&figures.bandwidth, &figures.optimizer, &figures.checksum, &figures.transfers, &f32.product,
        &bf16.product, &f32.attention, &bf16.attention, &f32.elementwise, &bf16.elementwise})
    *figure = {value += 1e9, 0.0123, "as measured"};
  figures.memory = {24.0 * (1 << 30), 0, ""};
  figures.ssds = {{"/mnt/a b", {2e9, 0, "reads"}, {1e9, 0, ""}, {2.5e9, 0, ""}, {80e3, 0, ""}, {}},
                  {"state", {3e9, 0, ""}, {1.5e9, 0, ""}, {}, {}, {}}};
  figures.warnings = {"/mnt/a b: doubtful"};
  return figures;
}

TEST(MachineFileTest, IsReadBack) {
  const std::string text = FormatMachineFile(makeFigures(), "8-way.host");
  FrontendResult result = compileTexts({{"tiny.boa", kSpec}, {"machine.boa", text}});
  ASSERT_TRUE(result.spec) << result.diagnostics << text;
  const MachineSettings &machine = result.spec->machine;
  EXPECT_EQ(machine.name, "m_8_way_host");
  EXPECT_EQ(machine.kernels, KernelSet::avx2);
  EXPECT_EQ(machine.host_memory, int64_t{24} << 30);
  EXPECT_EQ(machine.host_bandwidth, 124400000000);
  EXPECT_EQ(machine.optimizer, 125400000000);
  EXPECT_EQ(machine.checksum, 126400000000);
  EXPECT_EQ(machine.transfers, 127400000000);
  EXPECT_EQ(machine.compute.f32, 128400000000);
  EXPECT_EQ(machine.compute.bf16, 129400000000);
  EXPECT_EQ(machine.compute_attention.f32, 130400000000);
  EXPECT_EQ(machine.compute_attention.bf16, 131400000000);
  EXPECT_EQ(machine.device_bandwidth.f32, 132400000000);
  EXPECT_EQ(machine.device_bandwidth.bf16, 133400000000);
  ASSERT_EQ(machine.ssd.size(), 2u);
  EXPECT_EQ(machine.ssd[0].path, "/mnt/a b");
  EXPECT_EQ(machine.ssd[0].read, 2000000000);
  EXPECT_EQ(machine.ssd[0].write, 1000000000);
  EXPECT_EQ(machine.ssd[0].both, 2500000000);
  EXPECT_EQ(machine.ssd[0].latency, 80000);
  // What was not measured is not said.
  EXPECT_EQ(machine.ssd[1].both, 0);
  EXPECT_EQ(machine.ssd[1].latency, 0);
}

// How each was measured, and what is doubtful, stands in it, also after a layout.
TEST(MachineFileTest, SaysHow) {
  const FormatResult laidOut =
      formatText({"machine.boa", FormatMachineFile(makeFigures(), "host")});
  ASSERT_TRUE(laidOut.after) << laidOut.diagnostics;
  for (const char *part :
       {kMachineFileHead, "# Warning: /mnt/a b: doubtful", "# reads alone: reads",
        "# products in f32: as measured; half within 1.2%", "    compute {\n",
        "\n      bf16 = 129.4 GFLOP/s\n"})
    EXPECT_NE(laidOut.after->find(part), std::string::npos) << part << "\n" << *laidOut.after;
}

} // namespace
} // namespace boa::frontend
