//===- settings.cpp - What BOA_FAKE_CUDA says -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/settings.h"

#include "test/fake_cuda/cuda_abi.h"

#include <cstdlib>
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

} // namespace

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
      (key == "fail" ? settings.fail : settings.late)[value.substr(0, colon)] = {call, 0};
      continue;
    }
    if (key == "dnn_best" || key == "dnn_fallback") {
      if (value != "e" && value.find_first_not_of("nuar") != std::string::npos)
        return "expected letters of 'nuar', or 'e', but found '" + word + "'";
      (key == "dnn_best" ? settings.dnn.best : settings.dnn.fallback) = value;
      continue;
    }
    int64_t number = 0;
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
    else if (key == "dnn_version")
      settings.dnn.version = int(number);
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
