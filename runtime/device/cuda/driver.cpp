//===- driver.cpp - libcuda, as far as it is used -------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>

namespace boa::cuda {

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

void Library::Close::operator()(void *handle) const { dlclose(handle); }

absl::Status Library::Open(const char *variable, const std::vector<std::string> &names,
                           const char *missing, const std::function<absl::Status(Library)> &use) {
  const char *const named = std::getenv(variable);
  const std::vector<std::string> others =
      named ? std::vector<std::string>(absl::StrSplit(named, ':')) : std::vector<std::string>();
  absl::Status refused; // of what there is, the first
  std::string reasons;
  for (const std::string &name : named ? others : names) {
    Library library;
    library.name = name;
    // It keeps threads and what is to be done at exit: closed, it stays.
    library.handle.reset(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE));
    if (!library.handle) {
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", dlerror());
      continue;
    }
    absl::Status status = use(std::move(library));
    if (status.ok())
      return status;
    if (refused.ok())
      refused = std::move(status);
  }
  if (!refused.ok())
    return refused;
  return absl::NotFoundError(named ? absl::StrCat(variable, "=", named, ": ", reasons)
                                   : absl::StrCat(missing, " (", reasons, ")"));
}

absl::StatusOr<Library> Library::Open(const char *variable, const std::vector<std::string> &names,
                                      const char *missing) {
  Library opened;
  absl::Status status = Open(variable, names, missing, [&](Library library) {
    opened = std::move(library);
    return absl::OkStatus();
  });
  if (!status.ok())
    return status;
  return opened;
}

void *Library::Find(const char *symbol) const { return dlsym(handle.get(), symbol); }

//===----------------------------------------------------------------------===//
// Driver
//===----------------------------------------------------------------------===//

// PTX of version 8.0 is what programs are compiled to.
static constexpr int kLeastVersion = 12000;

std::string FormatVersion(int version) {
  return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10);
}

std::string Driver::Describe() const {
  const char *const named = std::getenv("BOA_CUDA_RELEASE");
  std::ifstream file(named ? named : "/sys/module/nvidia/version");
  std::string release;
  file >> release;
  return absl::StrCat(release, release.empty() ? "" : " ", "for CUDA ", FormatVersion(version()));
}

absl::StatusOr<std::unique_ptr<Driver>> Driver::Open() {
  auto library = Library::Open("BOA_CUDA_DRIVER", {"libcuda.so.1"},
                               "there is no NVIDIA driver on this machine: install one, or write "
                               "`device cpu`");
  if (!library.ok())
    return library.status();
  std::unique_ptr<Driver> driver(new Driver(*std::move(library)));
  const char *lacking = nullptr;
#define BOA_FIND(name, exported, arguments) driver->library.Bind(driver->name, #exported, lacking);
  BOA_CUDA_DRIVER_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
  auto too_old = [&](const std::string &why) {
    return absl::FailedPreconditionError(absl::StrCat("the NVIDIA driver of this machine ", why,
                                                      ": install one for CUDA ",
                                                      FormatVersion(kLeastVersion), " or newer"));
  };
  if (lacking)
    return too_old(absl::StrCat("has no ", lacking, " (", driver->library.path(), ")"));
  if (absl::Status status = driver->Call("asking the driver's version", driver->DriverGetVersion,
                                         &driver->cuda_version);
      !status.ok())
    return status;
  if (driver->version() < kLeastVersion)
    return too_old(absl::StrCat("is for CUDA ", FormatVersion(driver->version())));
  if (absl::Status status = driver->Call("starting the driver", driver->Init, 0); !status.ok())
    return status;
  return driver;
}

/// What to do about an error, and of which kind it is.
static std::pair<absl::StatusCode, const char *> DriverAdvice(Result result) {
  using Code = absl::StatusCode;
  switch (result) {
  case kOutOfMemory:
    return {Code::kResourceExhausted,
            "end what else uses the GPU (nvidia-smi lists it), or give the program less memory"};
  case kStubLibrary:
    return {Code::kFailedPrecondition,
            "the library that was found is the toolkit's stub: put the driver's own before it"};
  case kDeviceUnavailable:
    return {Code::kUnavailable, "another process has the GPU to itself (nvidia-smi lists it): end "
                                "that, or allow several (nvidia-smi -c DEFAULT)"};
  case kNoDevice:
    return {Code::kNotFound, "nvidia-smi shows which GPUs there are, and CUDA_VISIBLE_DEVICES must "
                             "not hide them all; or write `device cpu`"};
  case kSystemNotReady:
    return {Code::kUnavailable,
            "the machine's GPUs are not connected yet: start its fabric manager "
            "(systemctl start nvidia-fabricmanager), then try again"};
  case kSystemDriverMismatch:
    return {Code::kFailedPrecondition,
            "the driver's library and its kernel module are of two versions: restart the machine"};
  case kCompatNotSupported:
    return {Code::kFailedPrecondition,
            "the libcuda that was found is for newer CUDA than this GPU's driver may be used with: "
            "take the compatibility package (cuda-compat) out of LD_LIBRARY_PATH, or install a "
            "newer driver"};
  case kJitCompilerNotFound:
    return {Code::kFailedPrecondition,
            "the driver's compiler (libnvidia-ptxjitcompiler.so.1) is missing: install the whole "
            "driver; in a container, NVIDIA_DRIVER_CAPABILITIES must have `compute`"};
  case kJitCompilationDisabled:
    return {Code::kFailedPrecondition,
            "the driver may not compile: unset CUDA_DISABLE_PTX_JIT and CUDA_DISABLE_JIT"};
  case kInvalidImage:
  case kNoBinaryForGpu:
  case kInvalidPtx:
  case kUnsupportedPtxVersion:
    return {Code::kFailedPrecondition,
            "compile the program anew for this GPU, or install a newer driver"};
  case kLaunchTimeout:
    return {Code::kUnavailable, "the GPU also draws a screen, and ends what runs for seconds: use "
                                "one without a screen; go on from the last commit"};
  case kIllegalAddress:
  case kHardwareStackError:
  case kIllegalInstruction:
  case kMisalignedAddress:
  case kInvalidAddressSpace:
  case kInvalidPc:
  case kLaunchFailed:
    return {Code::kInternal, "a kernel went wrong, which is an error of the compiler: "
                             "compute-sanitizer says where; go on from the last commit"};
  case kEccUncorrectable:
    return {Code::kDataLoss,
            "the GPU's memory is damaged (nvidia-smi -q says where): do not use it "
            "before it is repaired, and go on from the last commit"};
  case kNvlinkUncorrectable:
    return {Code::kDataLoss, "a link between GPUs is damaged (nvidia-smi nvlink -e counts its "
                             "errors): restart the machine, and go on from the last commit"};
  default:
    return {Code::kInternal, "the system's log (dmesg) may say more; go on from the last commit"};
  }
}

absl::Status Driver::Error(Result result, const char *symbol, const std::string &doing,
                           const std::string &advice) const {
  const char *name = nullptr, *text = nullptr;
  // Of a number that the driver does not know it says neither.
  GetErrorName.address(result, &name);
  GetErrorString.address(result, &text);
  const auto [code, usual] = DriverAdvice(result);
  return absl::Status(code,
                      absl::StrCat(doing, ": ", symbol, ": ", name ? name : "error ",
                                   name ? "" : absl::StrCat(result), " (", text ? text : "unknown",
                                   "): ", advice.empty() ? usual : advice));
}

} // namespace boa::cuda
