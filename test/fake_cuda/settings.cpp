//===- settings.cpp - What BOA_FAKE_CUDA says -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/settings.h"

#include "test/fake_cuda/cuda_abi.h"
#include "test/fake_cuda/fake.h"

#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>

namespace boa::fake {
namespace {

bool Number(const std::string &text, int64_t &value) {
  char *end = nullptr;
  value = strtoll(text.c_str(), &end, 10);
  std::string unit = end;
  if (end == text.c_str() || value < 0)
    return false;
  if (unit == "KiB")
    value <<= 10;
  else if (unit == "MiB")
    value <<= 20;
  else if (unit == "GiB")
    value <<= 30;
  else
    return unit.empty();
  return true;
}

/// What can be made to fail: all that calls BeginCall, and cuDriverGetVersion.
constexpr std::string_view kFunctions[] = {
    "cuCtxGetCurrent",
    "cuCtxGetLimit",
    "cuCtxSetCurrent",
    "cuCtxSetLimit",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventElapsedTime_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFileBufDeregister",
    "cuFileBufRegister",
    "cuFileDriverClose_v2",
    "cuFileDriverOpen",
    "cuFileDriverSetMaxPinnedMemSize",
    "cuFileHandleRegister",
    "cuFileRead",
    "cuFileWrite",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphUpload",
    "cuInit",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
    "cudnnBackendCreateDescriptor",
    "cudnnBackendDestroyDescriptor",
    "cudnnBackendExecute",
    "cudnnBackendFinalize",
    "cudnnBackendGetAttribute",
    "cudnnBackendSetAttribute",
    "cudnnCreate",
    "cudnnDestroy",
    "cudnnSetStream",
};

} // namespace

bool MayFail(std::string_view function) {
  static const auto *const names =
      new std::set<std::string_view>(std::begin(kFunctions), std::end(kFunctions));
  return names->count(function) > 0;
}

bool MayFailLate(std::string_view function) {
  for (std::string_view one :
       {"cuLaunchHostFunc", "cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
        "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async", "cublasLtMatmul", "cudnnBackendExecute"})
    if (one == function)
      return true;
  return false;
}

std::string ParseSettings(const char *text, Settings &settings) {
  settings = {};
  int64_t error = CUDA_ERROR_UNKNOWN, late_error = CUDA_ERROR_LAUNCH_FAILED;
  bool error_given = false;
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) {
    size_t equal = word.find('=');
    std::string key = word.substr(0, equal);
    std::string value = equal == std::string::npos ? "" : word.substr(equal + 1);
    if (key == "fail" || key == "late") {
      size_t colon = value.find(':');
      int64_t call = 1;
      if (colon != std::string::npos && (!Number(value.substr(colon + 1), call) || call < 1))
        return "expected " + key + "=FUNCTION:CALL, but found '" + word + "'";
      const std::string function = value.substr(0, colon);
      if (!(key == "fail" ? MayFail(function) : MayFailLate(function)))
        return "no call of '" + function + "' is made to fail" + (key == "fail" ? "" : " late");
      (key == "fail" ? settings.fail : settings.late)[function] = {call, 0};
      continue;
    }
    if (key == "dnn_best" || key == "dnn_fallback") {
      if (value != "e" && value.find_first_not_of("nuar") != std::string::npos)
        return "expected letters of 'nuar', or 'e', but found '" + word + "'";
      (key == "dnn_best" ? settings.dnn.best : settings.dnn.fallback) = value;
      continue;
    }
    int64_t number = 0;
    if (key == "algorithm_us") {
      settings.algorithm_us.clear();
      std::istringstream parts(value);
      for (std::string part; std::getline(parts, part, ',');)
        if (part == "x")
          settings.algorithm_us.push_back(-1);
        else if (Number(part, number))
          settings.algorithm_us.push_back(number);
        else
          return "expected microseconds or 'x', but found '" + part + "'";
      if (settings.algorithm_us.empty())
        return "expected algorithm_us=NUMBER,NUMBER, but found '" + word + "'";
      continue;
    }
    if (!Number(value, number))
      return "expected NAME=NUMBER, but found '" + word + "'";
    if (key == "seed")
      settings.seed = number;
    else if (key == "delay_us")
      settings.delay_us = number;
    else if (key == "wake_us")
      settings.wake_us = number;
    else if (key == "memory")
      settings.memory = number;
    else if (key == "registered")
      settings.registered = number;
    else if (key == "register_once")
      settings.register_once = number;
    else if (key == "overhead")
      settings.overhead = number;
    else if (key == "devices" && number <= kMostDevices)
      settings.devices = int(number);
    else if (key == "threads" && number >= 1)
      settings.threads = int(number);
    else if (key == "driver")
      settings.driver = int(number);
    else if (key == "capability")
      settings.capability = int(number);
    else if (key == "block_threads" && number >= 1 && number <= 1024)
      settings.block_threads = int(number);
    else if (key == "local")
      settings.local = number;
    else if (key == "pageable" && number <= 1)
      settings.pageable = number == 1;
    else if (key == "dnn_version")
      settings.dnn.version = int(number);
    else if (key == "dnn_cuda")
      settings.dnn.cuda = int(number);
    else if (key == "dnn_notes" && number >= 1)
      settings.dnn.notes = number;
    else if (key == "error" && number >= 1) {
      error = number;
      error_given = true;
    } else
      return "there is no '" + word + "'";
  }
  for (auto &[name, injection] : settings.fail)
    injection.error = int(error);
  for (auto &[name, injection] : settings.late)
    injection.error = int(error_given ? error : late_error);
  return {};
}

} // namespace boa::fake
