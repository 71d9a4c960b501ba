//===- driver.cpp - libcuda, as far as it is used -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <dlfcn.h>

#include <cstdlib>

namespace boa::cuda {

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

void Library::Close::operator()(void *handle) const { dlclose(handle); }

absl::StatusOr<Library> Library::Open(const char *variable,
                                      std::initializer_list<const char *> names,
                                      const char *missing) {
  Library library;
  const char *const other = std::getenv(variable);
  auto open = [&](const char *name) {
    library.name = name;
    // It keeps threads and what is to be done at exit: closed, it stays.
    library.handle.reset(dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    return library.handle != nullptr;
  };
  if (other) {
    if (!open(other))
      return absl::NotFoundError(absl::StrCat(variable, "=", other, ": ", dlerror()));
    return library;
  }
  std::string reasons;
  for (const char *name : names) {
    if (open(name))
      return library;
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", dlerror());
  }
  return absl::NotFoundError(absl::StrCat(missing, " (", reasons, ")"));
}

void *Library::Find(const char *symbol) const { return dlsym(handle.get(), symbol); }

//===----------------------------------------------------------------------===//
// Driver
//===----------------------------------------------------------------------===//

// PTX of version 8.0 is what programs are compiled to.
static constexpr int kLeastVersion = 12000;

static std::string FormatVersion(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

absl::StatusOr<std::unique_ptr<Driver>> Driver::Open() {
  auto library = Library::Open("BOA_CUDA_DRIVER", {"libcuda.so.1"},
                               "there is no NVIDIA driver on this machine: install one, or write "
                               "`device cpu`");
  if (!library.ok())
    return library.status();
  std::unique_ptr<Driver> driver(new Driver(*std::move(library)));
  const char *lacking = nullptr;
#define BOA_FIND(name, exported, arguments)                                                        \
  driver->name.symbol = #exported;                                                                 \
  driver->name.address =                                                                           \
      reinterpret_cast<decltype(driver->name.address)>(driver->library.Find(#exported));           \
  if (!driver->name.address && !lacking)                                                           \
    lacking = #exported;
  BOA_CUDA_DRIVER_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
  auto too_old = [&](const std::string &why) {
    return absl::FailedPreconditionError(absl::StrCat("the NVIDIA driver of this machine ", why,
                                                      ": install one for CUDA ",
                                                      FormatVersion(kLeastVersion), " or newer"));
  };
  if (lacking)
    return too_old(absl::StrCat("has no ", lacking, " (", driver->library.path(), ")"));
  int version = 0;
  if (absl::Status status =
          driver->Call("asking the driver's version", driver->DriverGetVersion, &version);
      !status.ok())
    return status;
  if (version < kLeastVersion)
    return too_old(absl::StrCat("is for CUDA ", FormatVersion(version)));
  if (absl::Status status = driver->Call("starting the driver", driver->Init, 0); !status.ok())
    return status;
  return driver;
}

/// What to do about an error, and of which kind it is.
static std::pair<absl::StatusCode, const char *> Advice(Result result) {
  using Code = absl::StatusCode;
  switch (result) {
  case kOutOfMemory:
    return {Code::kResourceExhausted,
            "end what else uses the GPU (nvidia-smi lists it), or give the program less memory"};
  case kStubLibrary:
    return {Code::kFailedPrecondition,
            "the library that was found is the toolkit's stub: put the driver's own before it"};
  case kNoDevice:
    return {Code::kNotFound, "nvidia-smi shows which GPUs there are, and CUDA_VISIBLE_DEVICES must "
                             "not hide them all; or write `device cpu`"};
  case kSystemDriverMismatch:
    return {Code::kFailedPrecondition,
            "the driver's library and its kernel module are of two versions: restart the machine"};
  case kInvalidImage:
  case kNoBinaryForGpu:
  case kInvalidPtx:
  case kUnsupportedPtxVersion:
    return {Code::kFailedPrecondition,
            "compile the program anew for this GPU, or install a newer driver"};
  case kIllegalAddress:
  case kLaunchFailed:
    return {Code::kInternal, "a kernel went wrong, which is an error of the compiler: "
                             "compute-sanitizer says where; go on from the last commit"};
  case kEccUncorrectable:
    return {Code::kDataLoss,
            "the GPU's memory is damaged (nvidia-smi -q says where): do not use it "
            "before it is repaired, and go on from the last commit"};
  default:
    return {Code::kInternal, "the system's log (dmesg) may say more; go on from the last commit"};
  }
}

absl::Status Driver::Error(Result result, const char *symbol, const std::string &doing) const {
  const char *name = nullptr, *text = nullptr;
  // Of a number that the driver does not know it says neither.
  GetErrorName.address(result, &name);
  GetErrorString.address(result, &text);
  auto [code, advice] = Advice(result);
  return absl::Status(code, absl::StrCat(doing, ": ", symbol, ": ", name ? name : "error ",
                                         name ? "" : absl::StrCat(result), " (",
                                         text ? text : "unknown", "): ", advice));
}

} // namespace boa::cuda
