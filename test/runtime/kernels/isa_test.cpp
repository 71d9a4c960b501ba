//===- isa_test.cpp - The choice of kernels, and their check -------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/kernels/check.h"
#include "runtime/kernels/gemm.h"
#include "test/runtime/kernels/fixture.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>

namespace boa::kernel_tests {

INSTANTIATE_TEST_SUITE_P(All, EachIsa, ::testing::ValuesIn(boa::kIsaNames),
                         [](const auto &info) { return std::string(info.param); });

} // namespace boa::kernel_tests

using namespace boa::kernel_tests;

namespace {

/// Signatures as CPUID of leaf 1 gives them, of processors that there are.
boa::Processor processorOf(const char *vendor, uint32_t signature, boa::Isa last) {
  return {vendor,
          signature,
          last >= boa::Isa::kAvx2,
          last >= boa::Isa::kAvx512,
          last >= boa::Isa::kAvx512Bf16,
          last >= boa::Isa::kAmx};
}

// The fastest set is chosen by the model, not the last one that the processor lists.
TEST(Isa, IsChosenByTheModel) {
  using boa::Isa;
  const struct {
    const char *what, *vendor;
    uint32_t signature;
    int family, model;
    Isa last, want;
  } cases[] = {
      {"Sapphire Rapids", "GenuineIntel", 0x806f8, 6, 0x8f, Isa::kAmx, Isa::kAmx},
      {"its AMX hidden", "GenuineIntel", 0x806f8, 6, 0x8f, Isa::kAvx512Bf16, Isa::kAvx512},
      {"Granite Rapids, AMX hidden", "GenuineIntel", 0xa06d1, 6, 0xad, Isa::kAvx512Bf16,
       Isa::kAvx512},
      {"Ice Lake", "GenuineIntel", 0x606a6, 6, 0x6a, Isa::kAvx512, Isa::kAvx512},
      {"Zen 3", "AuthenticAMD", 0xa00f11, 0x19, 0x01, Isa::kAvx2, Isa::kAvx2},
      {"Zen 4", "AuthenticAMD", 0xa10f11, 0x19, 0x11, Isa::kAvx512Bf16, Isa::kAvx512Bf16},
      {"Zen 5", "AuthenticAMD", 0xb00f21, 0x1a, 0x02, Isa::kAvx512Bf16, Isa::kAvx512Bf16},
      {"unknown", "GenuineAbacus", 0xa10f11, 0x19, 0x11, Isa::kAvx512Bf16, Isa::kAvx512},
      {"unknown, with AMX", "GenuineAbacus", 0x806f8, 6, 0x8f, Isa::kAmx, Isa::kAmx},
      {"nothing", "", 0, 0, 0, Isa::kBaseline, Isa::kBaseline},
  };
  for (const auto &c : cases) {
    SCOPED_TRACE(c.what);
    const boa::Processor processor = processorOf(c.vendor, c.signature, c.last);
    EXPECT_EQ(processor.Family(), c.family);
    EXPECT_EQ(processor.Model(), c.model);
    EXPECT_STREQ(boa::IsaName(*boa::ChooseIsa(processor)), boa::IsaName(c.want));
    // A name wins over the table, where the processor has the set.
    for (const char *name : boa::kIsaNames) {
      const absl::StatusOr<Isa> isa = boa::ChooseIsa(processor, name);
      if (isa.ok())
        EXPECT_STREQ(boa::IsaName(*isa), name);
      else
        EXPECT_EQ(isa.status().message(),
                  absl::StrCat("this processor has ", boa::IsaName(c.last), " at most"));
    }
    EXPECT_EQ(boa::ChooseIsa(processor, "abacus").status().message(),
              "expected \"baseline\", \"avx2\", \"avx512\", \"avx512_bf16\" or \"amx\"");
  }
}

TEST(Isa, IsThisProcessorsUntilItIsNamed) {
  const boa::Isa before = boa::UsedIsa();
  EXPECT_EQ(before, *boa::ChooseIsa(boa::ThisProcessor()));
  EXPECT_TRUE(boa::UseIsa("baseline").ok());
  EXPECT_EQ(boa::UsedIsa(), boa::Isa::kBaseline);
  EXPECT_FALSE(boa::UseIsa("abacus").ok());
  EXPECT_EQ(boa::UsedIsa(), boa::Isa::kBaseline);
  EXPECT_TRUE(boa::UseIsa(boa::IsaName(before)).ok());
}

TEST_P(EachIsa, PassesTheCheckAtStart) {
  EXPECT_EQ(boa::CheckKernels(boa::UsedIsa()), absl::OkStatus());
}

// Each kernel in turn is wrong in another way, some only in one form.
TEST(CheckAtStart, RefusesWrongKernels) {
  const boa::ProductKernels right = boa::ProductsOf(boa::Isa::kBaseline);
  const auto refused = [](const boa::ProductKernels &kernels) {
    return std::string(boa::CheckKernels(boa::Isa::kAvx512, kernels).message());
  };
  const auto forgetful = [](auto kernel) {
    return [kernel](auto block) {
      --block.k;
      kernel(block);
    };
  };
  EXPECT_EQ(refused(right), "");
  boa::ProductKernels wrong = right;
  wrong.f32 = forgetful(right.f32);
  EXPECT_EQ(
      refused(wrong),
      "the kernels of avx512 are wrong on this processor: the product of f32 by f32 is -1.8501 "
      "at row 0, column 0, where plain loops make -1.59277; use others by BOA_CPU=avx2 or by "
      "`device cpu { kernels = avx2 }` in the machine");
  wrong = right;
  wrong.f32_by_bf16 = [&](boa::GemmBf16 block) {
    block.bias = nullptr;
    right.f32_by_bf16(block);
  };
  EXPECT_THAT(refused(wrong), testing::HasSubstr("the product of f32 by bf16 is "));
  wrong = right;
  wrong.bf16 = [&](boa::GemmBf16Bf16 block) {
    block.accumulate = block.transpose_a;
    right.bf16(block);
  };
  EXPECT_THAT(refused(wrong), testing::HasSubstr("the product of bf16 by bf16 in f32 is "));
  wrong = right;
  wrong.all_bf16 = [&](boa::GemmAllBf16 block) {
    right.all_bf16(block);
    if (block.transpose_b)
      for (int64_t i = 0; i < block.m; ++i)
        ++block.c[i * block.ldc];
  };
  EXPECT_THAT(refused(wrong),
              testing::HasSubstr("the product of bf16 by bf16 in bf16, B transposed, is "));
}

} // namespace
