//===- driver.h - libcuda, as far as it is used ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of the driver's functions, looked up when a device is made. Nothing is linked, and a
// machine without a driver gets a status. Types and numbers are declared here, so the build needs
// no toolkit. If one is installed, test/runtime/cuda/abi_test.cpp compares them with its headers.
//
// For tests, BOA_CUDA_DRIVER names other libraries than libcuda.so.1, separated by colons.
// BOA_CUDA_RELEASE names another file than /sys/module/nvidia/version.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_DRIVER_H
#define BOA_RUNTIME_DEVICE_CUDA_DRIVER_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// The toolkit's own names for opaque types of the libraries.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace boa::cuda {

using Result = int;                 // CUresult
using Ordinal = int;                // CUdevice
using Pointer = unsigned long long; // CUdeviceptr
using Context = CUctx_st *;
using Module = CUmod_st *;
using Function = CUfunc_st *;
using Stream = CUstream_st *;
using Event = CUevent_st *;
using CapturedGraph = CUgraph_st *;
using GraphExec = CUgraphExec_st *;

// CUresult
constexpr Result kSuccess = 0, kOutOfMemory = 2, kStubLibrary = 34, kDeviceUnavailable = 46,
                 kNoDevice = 100, kInvalidImage = 200, kNoBinaryForGpu = 209,
                 kEccUncorrectable = 214, kInvalidPtx = 218, kNvlinkUncorrectable = 220,
                 kJitCompilerNotFound = 221, kUnsupportedPtxVersion = 222,
                 kJitCompilationDisabled = 223, kIllegalAddress = 700, kLaunchTimeout = 702,
                 kHardwareStackError = 714, kIllegalInstruction = 715, kMisalignedAddress = 716,
                 kInvalidAddressSpace = 717, kInvalidPc = 718, kLaunchFailed = 719,
                 kSystemNotReady = 802, kSystemDriverMismatch = 803, kCompatNotSupported = 804;
// CUdevice_attribute; of blocks and grids x, then y and z
constexpr int kMaxBlock = 2, kMaxGrid = 5, kCapabilityMajor = 75, kCapabilityMinor = 76,
              kMaxSharedBytesOptin = 97;
// CUstream_flags, CUevent_flags
constexpr unsigned kNonBlocking = 1, kBlockingSync = 1;
// CUstreamCaptureMode
constexpr int kThreadLocalCapture = 1;
// CUjit_option
constexpr int kErrorLogBuffer = 5, kErrorLogBufferBytes = 6;
// CUfunction_attribute
constexpr int kMaxThreads = 0, kOwnSharedBytes = 1, kLocalBytes = 3, kMaxDynamicSharedBytes = 8;
// CUlimit
constexpr int kStackSize = 0;

/// F(name, symbol, arguments): code calls `name`, and the library exports `symbol`.
#define BOA_CUDA_DRIVER_FUNCTIONS(F)                                                               \
  F(Init, cuInit, (unsigned flags))                                                                \
  F(DriverGetVersion, cuDriverGetVersion, (int *version))                                          \
  F(GetErrorName, cuGetErrorName, (Result, const char **))                                         \
  F(GetErrorString, cuGetErrorString, (Result, const char **))                                     \
  F(DeviceGetCount, cuDeviceGetCount, (int *count))                                                \
  F(DeviceGet, cuDeviceGet, (Ordinal *, int index))                                                \
  F(DeviceGetName, cuDeviceGetName, (char *name, int bytes, Ordinal))                              \
  F(DeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, Ordinal))                \
  F(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (Context *, Ordinal))                        \
  F(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (Ordinal))                              \
  F(CtxSetCurrent, cuCtxSetCurrent, (Context))                                                     \
  F(CtxGetLimit, cuCtxGetLimit, (size_t *value, int limit))                                        \
  F(CtxSetLimit, cuCtxSetLimit, (int limit, size_t value))                                         \
  F(MemGetInfo, cuMemGetInfo_v2, (size_t *free, size_t *total))                                    \
  F(MemAlloc, cuMemAlloc_v2, (Pointer *, size_t bytes))                                            \
  F(MemFree, cuMemFree_v2, (Pointer))                                                              \
  F(MemHostRegister, cuMemHostRegister_v2, (void *, size_t bytes, unsigned flags))                 \
  F(MemHostUnregister, cuMemHostUnregister, (void *))                                              \
  F(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (Pointer to, const void *, size_t, Stream))             \
  F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, Pointer, size_t, Stream))                    \
  F(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (Pointer to, Pointer, size_t, Stream))                  \
  F(MemsetD8Async, cuMemsetD8Async, (Pointer, unsigned char, size_t, Stream))                      \
  F(StreamCreate, cuStreamCreate, (Stream *, unsigned flags))                                      \
  F(StreamDestroy, cuStreamDestroy_v2, (Stream))                                                   \
  F(StreamSynchronize, cuStreamSynchronize, (Stream))                                              \
  F(StreamWaitEvent, cuStreamWaitEvent, (Stream, Event, unsigned flags))                           \
  F(EventCreate, cuEventCreate, (Event *, unsigned flags))                                         \
  F(EventDestroy, cuEventDestroy_v2, (Event))                                                      \
  F(EventRecord, cuEventRecord, (Event, Stream))                                                   \
  F(EventSynchronize, cuEventSynchronize, (Event))                                                 \
  F(EventElapsedTime, cuEventElapsedTime, (float *milliseconds, Event, Event))                     \
  F(ModuleLoadDataEx, cuModuleLoadDataEx,                                                          \
    (Module *, const void *image, unsigned count, int *options, void **values))                    \
  F(ModuleUnload, cuModuleUnload, (Module))                                                        \
  F(ModuleGetFunction, cuModuleGetFunction, (Function *, Module, const char *name))                \
  F(FuncGetAttribute, cuFuncGetAttribute, (int *value, int attribute, Function))                   \
  F(FuncSetAttribute, cuFuncSetAttribute, (Function, int attribute, int value))                    \
  F(LaunchKernel, cuLaunchKernel,                                                                  \
    (Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,                \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream, void **arguments,          \
     void **extra))                                                                                \
  F(StreamBeginCapture, cuStreamBeginCapture_v2, (Stream, int mode))                               \
  F(StreamEndCapture, cuStreamEndCapture, (Stream, CapturedGraph *))                               \
  F(GraphInstantiate, cuGraphInstantiateWithFlags,                                                 \
    (GraphExec *, CapturedGraph, unsigned long long flags))                                        \
  F(GraphUpload, cuGraphUpload, (GraphExec, Stream))                                               \
  F(GraphLaunch, cuGraphLaunch, (GraphExec, Stream))                                               \
  F(GraphExecDestroy, cuGraphExecDestroy, (GraphExec))                                             \
  F(GraphDestroy, cuGraphDestroy, (CapturedGraph))

/// An opened library, closed by its destructor.
class Library {
public:
  /// Opens the first library that exists among the names in the environment variable, separated
  /// by colons, or else in `names`. `missing` says what to do if none exists.
  static absl::StatusOr<Library> Open(const char *variable, const std::vector<std::string> &names,
                                      const char *missing);
  /// The same, but `use` must accept the library. An error of `use` leads to the next name. It is
  /// the status if no later library is accepted.
  static absl::Status Open(const char *variable, const std::vector<std::string> &names,
                           const char *missing, const std::function<absl::Status(Library)> &use);
  /// Null: the library has no such symbol.
  void *Find(const char *symbol) const;
  const std::string &path() const { return name; }
  /// Sets an entry of a table; or, if the library has no such function, `lacking` to its name.
  template <typename Entry>
  void Bind(Entry &entry, const char *symbol, const char *&lacking) const {
    entry.symbol = symbol;
    entry.address = reinterpret_cast<decltype(entry.address)>(Find(symbol));
    if (!entry.address && !lacking)
      lacking = symbol;
  }

private:
  struct Close {
    void operator()(void *) const;
  };
  std::unique_ptr<void, Close> handle;
  std::string name;
};

/// A function of a library, with the name by which it is known.
template <typename R, typename... P> struct Entry {
  R (*address)(P...) = nullptr;
  const char *symbol = nullptr;
};
template <typename T> struct EntryOf;
template <typename R, typename... P> struct EntryOf<R(P...)> {
  using type = Entry<R, P...>;
};

/// Formats a number from cuDriverGetVersion: "13.0".
std::string FormatVersion(int version);

class Driver {
public:
  /// Opens and initialises the driver. If it is missing or too old, the status says what to
  /// install.
  static absl::StatusOr<std::unique_ptr<Driver>> Open();

#define BOA_FUNCTION(name, symbol, arguments) EntryOf<Result arguments>::type name;
  BOA_CUDA_DRIVER_FUNCTIONS(BOA_FUNCTION)
#undef BOA_FUNCTION

  /// The version of CUDA that the driver is for: 12040 is 12.4.
  int version() const { return cuda_version; }
  /// "580.65.06 for CUDA 13.0"; without the first number where the system does not say it. Drivers
  /// for one version of CUDA may compile a program to other code.
  std::string Describe() const;
  /// Calls a function of the table. Its error names the activity `doing`: "copying to the
  /// device".
  template <typename... P, typename... A>
  absl::Status Call(const char *doing, const Entry<Result, P...> &entry, A... arguments) const {
    const Result result = entry.address(arguments...);
    return result == kSuccess ? absl::OkStatus() : Error(result, entry.symbol, doing);
  }
  /// Explains a result, and says what to do about it unless `advice` does.
  absl::Status Error(Result, const char *symbol, const std::string &doing,
                     const std::string &advice = {}) const;

private:
  explicit Driver(Library library) : library(std::move(library)) {}
  Library library;
  int cuda_version = 0;
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_DRIVER_H
