//===- files.cpp - SSDs and the GPU's memory, by libcufile ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/files.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace boa::cuda {

static_assert(sizeof(FileDescr) == 24 && offsetof(FileDescr, fd) == 8);

/// What an error of the library means and what to do about it.
static const char *FileAdvice(int error) {
  switch (error) {
  case kFileDriverMissing:
  case kFileSetup:
    return "its kernel module is not loaded: load it (modprobe nvidia-fs), or allow its "
           "compatibility mode (allow_compat_mode in /etc/cufile.json)";
  case kFileVersionMismatch:
  case kFileVersionUnknown:
    return "the library and its kernel module nvidia-fs are of two versions: install both anew";
  case kFilePlatform:
    return "it does not know this machine";
  case kFileUnsupported:
    return "it does not take files of this file system: ext4 and XFS on NVMe it does";
  case kFileGpuUnsupported:
    return "it does not take this GPU";
  case kFileDriverFailed:
    return "the driver failed";
  case kFileTooMuchPinned:
  case kFilePinning:
    return "it may not pin so much of the GPU's memory (max_device_pinned_mem_size_kb and "
           "max_device_cache_size_kb in /etc/cufile.json)";
  case kFileOpenFlags:
    return "it does not take a file that is opened as this one was";
  case kFileNotDirect:
    return "the file is not open for direct I/O, which its file system refuses";
  case kFileDenied:
    return "permission denied";
  case kFileDisabled:
    return "its configuration (/etc/cufile.json) forbids it for this file";
  default:
    return "cufile.log may say more";
  }
}

/// The number's meaning is in cufile.h.
std::string GpuFiles::Words(FileError error) const {
  std::string cuda;
  if (error.error == kFileDriverFailed && error.cuda != kSuccess) {
    const char *name = nullptr;
    gpu->driver().GetErrorName.address(error.cuda, &name);
    cuda = absl::StrCat(" with ", name ? name : absl::StrCat("error ", error.cuda));
  }
  return absl::StrCat("cuFile error ", error.error, cuda, " (", FileAdvice(error.error), ")");
}

absl::Status GpuFiles::Error(FileError error, const std::string &doing) const {
  if (error.error == 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(doing, ": ", Words(error), "; or compile the program without `direct`"));
}

absl::Status GpuFiles::Find() {
  auto found = Library::Open(
      "BOA_CUDA_FILE", {"libcufile.so.0"},
      "the program has SSDs reach the GPU's memory (`direct = true`), and there is no GPUDirect "
      "Storage on this machine: install it (libcufile-13-0 or libcufile-12-9 from NVIDIA's "
      "repository; of nvidia-cufile from pip, BOA_CUDA_FILE names the file), or compile the "
      "program without `direct`, which needs "
      "none");
  if (!found.ok())
    return found.status();
  library = *std::move(found);
  const char *lacking = nullptr;
#define BOA_FIND(name, exported, result, arguments) library.Bind(name, #exported, lacking);
  BOA_CUDA_FILE_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
  if (lacking)
    return absl::FailedPreconditionError(
        absl::StrCat("libcufile has no ", lacking, " (", library.path(),
                     "): install one of CUDA 12 or newer, or compile the program without "
                     "`direct`"));
  return absl::OkStatus();
}

absl::Status GpuFiles::Open(const Gpu &the_gpu, const std::vector<IoFile> &files, char *at,
                            int64_t bytes) {
  gpu = &the_gpu;
  if (absl::Status status = Find(); !status.ok())
    return status;
  // It pins 32 GiB unless it was told before it starts, and what it takes itself counts. Where it
  // needs more, it is told; should it not listen, it says so when it is to pin.
  constexpr int64_t kUntold = int64_t{32} << 30, kItsOwn = int64_t{1} << 30; // bytes
  constexpr int64_t kUnit = 64;                                              // KiB
  const int64_t most = std::max(kUntold, bytes + kItsOwn);
  SetMostPinned.address(size_t(most / 1024 / kUnit * kUnit));
  if (absl::Status status = Error(DriverOpen.address(), "starting GPUDirect Storage"); !status.ok())
    return status;
  opened = true;
  for (const IoFile &file : files)
    if (absl::Status status = Register(file); !status.ok())
      return status;
  // Without it the library goes by way of memory of its own on the GPU.
  const FileError error = BufRegister.address(at, size_t(bytes), 0);
  registered = error.error == 0;
  if (!registered)
    unregistered = Words(error);
  memory = at;
  memory_bytes = bytes;
  return absl::OkStatus();
}

/// By a descriptor of its own: of the store's O_NOFOLLOW cannot be taken, and the library refuses
/// files that were opened with it.
absl::Status GpuFiles::Register(const IoFile &file) {
  const int flags = fcntl(file.fd, F_GETFL) & (O_ACCMODE | O_DIRECT);
  int fd;
  do
    fd = open(absl::StrCat("/proc/self/fd/", file.fd).c_str(), flags | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0)
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot open ", file.path, " once more for GPUDirect Storage: ", std::strerror(errno)));
  descriptors.push_back(fd);
  FileDescr descr = {};
  descr.type = kFileDescriptor;
  descr.fd = fd;
  FileHandle handle = nullptr;
  absl::Status status = Error(HandleRegister.address(&handle, &descr),
                              absl::StrCat("preparing ", file.path, " for GPUDirect Storage"));
  if (status.ok())
    handles.push_back(handle);
  return status;
}

GpuFiles::~GpuFiles() {
  if (registered)
    BufDeregister.address(memory);
  for (FileHandle handle : handles)
    HandleDeregister.address(handle);
  for (int fd : descriptors)
    close(fd);
  if (opened)
    DriverClose.address();
}

bool GpuFiles::Holds(const void *data) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  return address >= begin && address - begin < uintptr_t(memory_bytes);
}

int64_t GpuFiles::Move(bool write, int32_t file, int64_t offset, void *data, int64_t bytes,
                       std::string &words) {
  // A thread of the backend may be here for the first time.
  if (absl::Status status = gpu->Enter(); !status.ok()) {
    words = std::string(status.message());
    return -EIO;
  }
  const off_t in_memory = static_cast<char *>(data) - memory;
  errno = 0;
  const ssize_t moved = write
                            ? Write.address(handles[file], memory, size_t(bytes), offset, in_memory)
                            : Read.address(handles[file], memory, size_t(bytes), offset, in_memory);
  if (moved >= 0)
    return moved;
  if (moved == -1) // of the file system
    return errno != 0 ? -int64_t(errno) : -EIO;
  if (-moved == kFileNoMemory)
    return -EAGAIN; // for a moment, it says
  words = Words({int(-moved), kSuccess});
  return -EIO;
}

std::string GpuFiles::Describe() const {
  return absl::StrCat(
      "the GPU's memory through cuFile",
      unregistered.empty() ? "" : ", which does not take it all at once: ", unregistered);
}

} // namespace boa::cuda
