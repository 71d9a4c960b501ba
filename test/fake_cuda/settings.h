//===- settings.h - What BOA_FAKE_CUDA says ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_SETTINGS_H
#define BOA_TEST_FAKE_CUDA_SETTINGS_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace boa::fake {

/// Which call of a function, counted from 1, and with what it ends.
struct Injection {
  int64_t call;
  int error;
};

/// What heuristics of cuDNN propose, in their order: a letter for each (README.md).
struct DnnSettings {
  int version = 91900, cuda = 13000;
  int64_t notes = 1; // that an engine has at least
  std::string best = "nuar", fallback = "r";
};

/// The table of README.md.
struct Settings {
  uint64_t seed = 1;
  int64_t delay_us = 0, wake_us = 0;
  int64_t memory = int64_t(1) << 30, overhead = 0;
  int devices = 1;
  int threads = 2;
  int driver = 13000;
  int capability = 90;
  int block_threads = 1024;
  int64_t local = 0;
  bool pageable = false; // copies to pageable memory are not waited for
  int64_t registered = INT64_MAX, register_once = int64_t(64) << 30;
  DnnSettings dnn;
  std::vector<int64_t> algorithm_us = {0}; // of cuBLASLt; < 0: does not do it
  std::map<std::string, Injection> fail, late;
};

/// Whether what calls of the function enqueue may be made to fail.
bool MayFailLate(std::string_view function);

/// Words separated by spaces; null is none. Returns what is wrong, or nothing.
std::string ParseSettings(const char *text, Settings &);

} // namespace boa::fake

#endif // BOA_TEST_FAKE_CUDA_SETTINGS_H
