//===- fake.h - What the parts of the fake share ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libboa_fake_cuda.so defines it; the fakes of libraries and tests use it, too.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_FAKE_H
#define BOA_TEST_FAKE_CUDA_FAKE_H

#include "test/fake_cuda/cuda_abi.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#define BOA_FAKE_API __attribute__((visibility("default")))

/// What was said on stderr since the last call, a line each; empty: nothing. Where a process
/// that said something nobody asked for ends with exit status 0, it becomes 86.
extern "C" BOA_FAKE_API const char *boa_fake_cuda_reports(void);

/// Of a function that BOA_FAKE_CUDA says is to fail, how often it was called since cuInit.
extern "C" BOA_FAKE_API int64_t boa_fake_cuda_calls(const char *function);

/// Microseconds that all streams slept by `delay_us` since the last call.
extern "C" BOA_FAKE_API int64_t boa_fake_cuda_delays(void);

namespace boa::fake {

/// Says on stderr what was done wrong: "fake CUDA: " and the words. Returns `error`.
BOA_FAKE_API CUresult Report(CUresult error, const std::string &words);

/// Of device memory, that an operation touches.
struct DeviceRange {
  CUdeviceptr address;
  size_t bytes;
  std::string name; // for errors: "argument 2"
};
/// Where the ranges lie, for the fake alone. Returns what went wrong, or nothing.
using Operation = std::function<std::string(const std::vector<char *> &)>;

/// Checks the ranges, now and when it runs, and has it run in its turn. `what`: the function
/// that is called.
BOA_FAKE_API CUresult Enqueue(const char *what, CUstream, std::vector<DeviceRange>, Operation);

/// Where a range of the current context's memory lies, for a fake that uses no stream: whoever
/// asks sees to it that nothing else is at it.
BOA_FAKE_API CUresult Reach(const char *what, const DeviceRange &, char *&data);

/// What the current context, one of its functions or a library takes of device memory (overhead).
BOA_FAKE_API CUresult TakeOverhead();

/// What BOA_FAKE_CUDA says of cuDNN (settings.h).
struct DnnSettings;
BOA_FAKE_API const DnnSettings &GetDnnSettings();

/// And of cuBLASLt's algorithms (settings.h).
BOA_FAKE_API const std::vector<int64_t> &GetAlgorithms();

/// Whether calls of the function, of any of the fakes, may be made to fail.
BOA_FAKE_API bool MayFail(std::string_view function);

/// Of the call `what` that begins: an error that it is to end with, or success.
BOA_FAKE_API CUresult BeginCall(const char *what);

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_FAKE_H
