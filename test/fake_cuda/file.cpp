//===- file.cpp - Files and device memory, as libcufile has them *- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A transfer takes a while, moves what it is told to move or less, and orders no thread after
// another but as a system call on the file does. BOA_FAKE_CUFILE (README.md) is read when the
// library is started.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/fake.h"
#include "test/fake_cuda/file_abi.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>

using namespace boa::fake;

namespace {

constexpr int64_t kBlock = 4096;

struct Injection {
  int64_t call = 0;
  int error = EIO;
};

struct State {
  std::mutex mutex; // of all
  bool open = false;
  int64_t delay_us = 0, short_every = 0;
  size_t pinned_kib = 0, told_kib = 0; // that may be pinned, and as it was told: 0: it was not
  uint64_t seed = 1;
  std::map<std::string, Injection> fail;
  std::map<std::string, int64_t> calls;
  int64_t transfers = 0;
  std::set<int> files; // a handle is 1 + its descriptor
  std::map<CUdeviceptr, size_t> buffers;
};
State &state() {
  static State *const one = new State;
  return *one;
}

std::string Parse(const char *text, State &s) {
  s.delay_us = s.short_every = s.transfers = 0;
  s.seed = 1;
  s.pinned_kib = size_t{32} << 20;
  s.fail.clear();
  s.calls.clear();
  int error = EIO;
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) {
    const size_t equal = word.find('='), colon = word.find(':');
    const std::string key = word.substr(0, equal);
    const int64_t number = atoll(word.c_str() + (equal == std::string::npos ? 0 : equal + 1));
    if (key == "fail" && colon != std::string::npos) {
      const std::string function = word.substr(equal + 1, colon - equal - 1);
      if (function.rfind("cuFile", 0) != 0 || !MayFail(function))
        return "no call of '" + function + "' is made to fail";
      s.fail[function].call = atoll(word.c_str() + colon + 1);
    } else if (key == "delay_us")
      s.delay_us = number;
    else if (key == "short")
      s.short_every = number;
    else if (key == "seed")
      s.seed = uint64_t(number);
    else if (key == "pinned")
      s.pinned_kib = size_t(number);
    else if (key == "error")
      error = int(number);
    else
      return "there is no '" + word + "'";
  }
  for (auto &[name, injection] : s.fail)
    injection.error = error;
  return {};
}

/// Under the mutex: the error that this call is to end with, or 0. BOA_FAKE_CUDA may say so, too.
int Injected(State &s, const char *what) {
  if (BeginCall(what))
    return EIO;
  auto it = s.fail.find(what);
  return it != s.fail.end() && ++s.calls[what] == it->second.call ? it->second.error : 0;
}

CUfileError_t Wrong(const char *what, int error, const char *words) {
  Report(error, std::string(what) + ": " + words);
  return {error, 0};
}

/// Where all begin: the library is open, and is not to fail now.
int Begin(State &s, const char *what) {
  if (int error = Injected(s, what))
    return error;
  return s.open ? 0 : Wrong(what, CU_FILE_DRIVER_NOT_INITIALIZED, "the library is not open").err;
}

ssize_t Transfer(const char *what, bool write, CUfileHandle_t handle, CUdeviceptr base,
                 size_t bytes, off_t in_file, off_t in_memory) {
  const int fd = int(reinterpret_cast<intptr_t>(handle)) - 1;
  const CUdeviceptr at = base + CUdeviceptr(in_memory);
  int64_t sleep_us = 0;
  {
    State &s = state();
    std::lock_guard<std::mutex> lock(s.mutex);
    if (int error = Begin(s, what)) {
      errno = error;
      return error > 5000 ? -error : -1;
    }
    if (!s.files.count(fd))
      return -Wrong(what, CU_FILE_HANDLE_NOT_REGISTERED, "of a file that is not registered").err;
    if (at % kBlock || bytes % kBlock || in_file % kBlock || !bytes)
      return -Wrong(what, CU_FILE_INVALID_VALUE, "not of whole blocks: it would go another way")
                  .err;
    if (auto it = s.buffers.find(base);
        it != s.buffers.end() && (in_memory < 0 || in_memory + bytes > it->second))
      return -Wrong(what, CU_FILE_INVALID_VALUE, "past the end of the buffer").err;
    ++s.transfers;
    if (s.short_every && s.transfers % s.short_every == 0)
      bytes = bytes > kBlock ? bytes / 2 / kBlock * kBlock : bytes;
    std::minstd_rand random(uint32_t(s.seed * 7919 + s.transfers));
    sleep_us = s.delay_us ? int64_t(random() % (2 * s.delay_us)) : 0;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
  char *data = nullptr;
  if (Reach(what, {at, bytes, write ? "where from" : "where to"}, data))
    return -CU_FILE_CUDA_DRIVER_ERROR;
  return write ? pwrite(fd, data, bytes, in_file) : pread(fd, data, bytes, in_file);
}

} // namespace

extern "C" {

BOA_FAKE_API CUfileError_t cuFileDriverOpen(void) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (std::string error = Parse(getenv("BOA_FAKE_CUFILE"), s); !error.empty())
    return Wrong(__func__, CU_FILE_INVALID_VALUE, ("BOA_FAKE_CUFILE: " + error).c_str());
  if (int error = Injected(s, __func__))
    return {error, 0};
  if (s.open)
    return Wrong(__func__, CU_FILE_INVALID_VALUE, "it is open");
  s.open = true;
  return {CU_FILE_SUCCESS, 0};
}

BOA_FAKE_API CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t kib) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (std::string error = Parse(getenv("BOA_FAKE_CUFILE"), s); !error.empty())
    return Wrong(__func__, CU_FILE_INVALID_VALUE, ("BOA_FAKE_CUFILE: " + error).c_str());
  if (int error = Injected(s, __func__))
    return {error, 0};
  if (s.open || kib % 64)
    return Wrong(__func__, CU_FILE_INVALID_VALUE, "once the library is open, or not of 64 KiB");
  s.told_kib = kib;
  return {CU_FILE_SUCCESS, 0};
}

BOA_FAKE_API CUfileError_t cuFileDriverClose_v2(void) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  const int error = Begin(s, __func__); // it is closed nevertheless
  if (!s.open)
    return {error, 0};
  s.open = false;
  s.told_kib = 0;
  if (!s.files.empty() || !s.buffers.empty())
    Report(0, "cuFileDriverClose: files or memory are registered still");
  s.files.clear();
  s.buffers.clear();
  return {error, 0};
}

BOA_FAKE_API CUfileError_t cuFileHandleRegister(CUfileHandle_t *handle, CUfileDescr_t *descr) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (int error = Begin(s, __func__))
    return {error, 0};
  const int fd = descr->handle.fd;
  if (descr->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD || fd < 0 || descr->fs_ops)
    return Wrong(__func__, CU_FILE_INVALID_VALUE, "of what is no open file");
  if (fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK | O_NOFOLLOW | O_NOATIME | O_DIRECTORY))
    return Wrong(__func__, CU_FILE_INVALID_FILE_OPEN_FLAG, "of a file that is open with others");
  if (!s.files.insert(fd).second)
    return Wrong(__func__, CU_FILE_HANDLE_ALREADY_REGISTERED, "of a file that is registered");
  *handle = reinterpret_cast<CUfileHandle_t>(intptr_t(fd) + 1);
  return {CU_FILE_SUCCESS, 0};
}

BOA_FAKE_API void cuFileHandleDeregister(CUfileHandle_t handle) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (!s.files.erase(int(reinterpret_cast<intptr_t>(handle)) - 1))
    Wrong(__func__, CU_FILE_HANDLE_NOT_REGISTERED, "of a file that is not registered");
}

BOA_FAKE_API CUfileError_t cuFileBufRegister(const void *base, size_t bytes, int flags) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (int error = Begin(s, __func__))
    return {error, 0};
  const auto at = CUdeviceptr(reinterpret_cast<uintptr_t>(base));
  char *data = nullptr;
  if (CUresult error = Reach(__func__, {at, bytes, "the memory"}, data))
    return {CU_FILE_CUDA_DRIVER_ERROR, error};
  if (at % kBlock || flags)
    return Wrong(__func__, CU_FILE_INVALID_VALUE, "not of whole blocks, or with flags");
  if (bytes > (s.told_kib ? s.told_kib : s.pinned_kib) * 1024)
    return {CU_FILE_INVALID_MAPPING_SIZE, 0};
  if (!s.buffers.insert({at, bytes}).second)
    return Wrong(__func__, CU_FILE_MEMORY_ALREADY_REGISTERED, "of what is registered");
  return {CU_FILE_SUCCESS, 0};
}

BOA_FAKE_API CUfileError_t cuFileBufDeregister(const void *base) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  const int error = Begin(s, __func__); // it is registered no more nevertheless
  if (!s.buffers.erase(CUdeviceptr(reinterpret_cast<uintptr_t>(base))))
    return Wrong(__func__, CU_FILE_MEMORY_NOT_REGISTERED, "of what is not registered");
  return {error, 0};
}

BOA_FAKE_API ssize_t cuFileRead(CUfileHandle_t handle, void *base, size_t bytes, off_t in_file,
                                off_t in_memory) {
  return Transfer(__func__, false, handle, CUdeviceptr(reinterpret_cast<uintptr_t>(base)), bytes,
                  in_file, in_memory);
}

BOA_FAKE_API ssize_t cuFileWrite(CUfileHandle_t handle, const void *base, size_t bytes,
                                 off_t in_file, off_t in_memory) {
  return Transfer(__func__, true, handle, CUdeviceptr(reinterpret_cast<uintptr_t>(base)), bytes,
                  in_file, in_memory);
}

} // extern "C"
