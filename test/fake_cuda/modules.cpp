//===- modules.cpp - Modules and functions ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/context.h"

#include <cstdio>
#include <cstring>
#include <utility>

using namespace boa::fake;

namespace {

constexpr int64_t kMostArguments = 512; // 4 KiB of addresses

Driver &driver() { return Driver::Get(); }

} // namespace

extern "C" {

BOA_FAKE_API CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                                         int *options, void **values) {
  Context *context;
  if (CUresult error = BeginCallIn(__func__, context))
    return error;
  const auto *emulated = static_cast<const boa_emulated_module *>(image);
  if (strncmp(emulated->magic, BOA_EMULATED_MAGIC, sizeof BOA_EMULATED_MAGIC) != 0) {
    const char words[] = "the fake driver runs emulated kernels alone";
    size_t size = 0;
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        size = reinterpret_cast<uintptr_t>(values[i]);
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER && size)
        snprintf(static_cast<char *>(values[i]), size, "%s", words);
    return CUDA_ERROR_INVALID_PTX;
  }
  for (int64_t i = 0; i < emulated->count; ++i) {
    const boa_emulated_function &function = emulated->functions[i];
    if (!function.name || !function.body || function.shared_bytes < 0 ||
        function.shared_bytes > kMostShared || function.arguments < 0 ||
        function.arguments > kMostArguments)
      return Report(CUDA_ERROR_INVALID_IMAGE,
                    "cuModuleLoadDataEx: function " + std::to_string(i) +
                        " of the module is not laid out as emulated.h says");
  }
  auto module = std::make_shared<Module>();
  module->context = context;
  module->emulated = emulated;
  *handle = driver().modules.Add(std::move(module));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuModuleUnload(CUmodule handle) {
  Context *context = nullptr;
  CUresult error = BeginCallIn(__func__, context);
  if (error && !GivesBack(error, context))
    return error;
  CUresult missing;
  if (!FindIn(__func__, driver().modules, handle, context, missing))
    return missing;
  driver().modules.Remove(handle);
  return error;
}

BOA_FAKE_API CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module_handle,
                                          const char *name) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto module = FindIn(__func__, driver().modules, module_handle, context, error);
  if (!module)
    return error;
  for (int64_t i = 0; i < module->emulated->count; ++i) {
    const boa_emulated_function &emulated = module->emulated->functions[i];
    if (strcmp(emulated.name, name) != 0)
      continue;
    auto function = std::make_shared<Function>();
    function->context = context;
    function->module = module_handle;
    function->emulated = &emulated;
    function->dynamic_limit = kStaticShared - emulated.shared_bytes;
    *handle = driver().functions.Add(std::move(function));
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

BOA_FAKE_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto function = FindFunction(__func__, handle, context, error);
  if (!function)
    return error;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
    *value = driver().settings.block_threads;
  else if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    *value = int(function->emulated->shared_bytes);
  else if (attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    *value = int(driver().settings.local);
  else
    return Report(CUDA_ERROR_INVALID_VALUE,
                  "cuFuncGetAttribute: the fake has no attribute " + std::to_string(attribute));
  return CUDA_SUCCESS;
}

BOA_FAKE_API CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  Context *context;
  CUresult error;
  if ((error = BeginCallIn(__func__, context)))
    return error;
  auto function = FindFunction(__func__, handle, context, error);
  if (!function)
    return error;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    return Report(CUDA_ERROR_INVALID_VALUE,
                  "cuFuncSetAttribute: the fake has no attribute " + std::to_string(attribute));
  if (value < 0 || value + function->emulated->shared_bytes > kMostShared)
    return CUDA_ERROR_INVALID_VALUE;
  function->dynamic_limit = value;
  return CUDA_SUCCESS;
}

} // extern "C"
