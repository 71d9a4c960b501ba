//===- profiler.cpp - A stand-in for a profiler ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVTX opens the library in NVTX_INJECTION64_PATH at the first range. This one writes the ranges to
// the file in BOA_FAKE_RANGES, as `begin NAME` and `end`, by the interface of CUDA's headers.
//
//===----------------------------------------------------------------------===//
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

static FILE *GetFile() {
  static FILE *const file = std::fopen(std::getenv("BOA_FAKE_RANGES"), "w");
  return file;
}

static int NVTX_API Push(const char *name) {
  std::fprintf(GetFile(), "begin %s\n", name);
  return 0;
}

static int NVTX_API Pop() {
  std::fprintf(GetFile(), "end\n");
  return 0;
}

extern "C" __attribute__((visibility("default"))) int
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !GetFile() ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) ||
      size <= NVTX_CBID_CORE_RangePop)
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(Push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(Pop);
  return 1;
}
