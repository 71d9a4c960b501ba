//===- files.h - SSDs and the GPU's memory, by libcufile ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of libcufile's functions, looked up when a device is made whose program asks for it.
// The threads of the I/O backend make the transfers and wait for them. Reads and writes are
// complete when they return. Work that is launched after a read sees its data.
//
// BOA_CUDA_FILE names other libraries than libcufile.so.0, separated by colons, for tests.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_DEVICE_CUDA_FILES_H
#define BOA_RUNTIME_DEVICE_CUDA_FILES_H

#include "runtime/device/cuda/gpu.h"
#include "runtime/io/io.h"

#include <sys/types.h>

#include <string>
#include <vector>

namespace boa::cuda {

/// CUfileError_t: an error of the library, 0 for none, and the driver's result if the driver
/// failed.
struct FileError {
  int error;
  Result cuda;
};
/// CUfileDescr_t; the union has a place for a descriptor and for a handle of another system.
struct FileDescr {
  int type;
  union {
    int fd;
    void *handle;
  };
  const void *operations;
};
using FileHandle = void *; // CUfileHandle_t

// CUfileFileHandleType; CUfileOpError
constexpr int kFileDescriptor = 1;
constexpr int kFileErrors = 5000, kFileDriverMissing = 5001, kFileVersionMismatch = 5004,
              kFileVersionUnknown = 5005, kFilePlatform = 5007, kFileUnsupported = 5008,
              kFileGpuUnsupported = 5009, kFileDriverFailed = 5011, kFileTooMuchPinned = 5016,
              kFileOpenFlags = 5019, kFileNotDirect = 5020, kFileDenied = 5025, kFileSetup = 5033,
              kFileDisabled = 5034, kFilePinning = 5036, kFileNoMemory = 5043;

/// F(name, symbol, result, arguments)
#define BOA_CUDA_FILE_FUNCTIONS(F)                                                                 \
  F(SetMostPinned, cuFileDriverSetMaxPinnedMemSize, FileError, (size_t kib))                       \
  F(DriverOpen, cuFileDriverOpen, FileError, ())                                                   \
  F(DriverClose, cuFileDriverClose_v2, FileError, ())                                              \
  F(HandleRegister, cuFileHandleRegister, FileError, (FileHandle *, FileDescr *))                  \
  F(HandleDeregister, cuFileHandleDeregister, void, (FileHandle))                                  \
  F(BufRegister, cuFileBufRegister, FileError, (const void *base, size_t bytes, int flags))        \
  F(BufDeregister, cuFileBufDeregister, FileError, (const void *base))                             \
  F(Read, cuFileRead, ssize_t,                                                                     \
    (FileHandle, void *base, size_t bytes, off_t in_file, off_t in_memory))                        \
  F(Write, cuFileWrite, ssize_t,                                                                   \
    (FileHandle, const void *base, size_t bytes, off_t in_file, off_t in_memory))

/// The files of a state and the device's memory, as libcufile knows them.
class GpuFiles : public FarMemory {
public:
  /// Nothing is under way.
  ~GpuFiles() override;
  /// Once, before all else. The GPU and the memory outlive it.
  absl::Status Open(const Gpu &, const std::vector<IoFile> &files, char *memory, int64_t bytes);

  bool Holds(const void *data) const override;
  int64_t Move(bool write, int32_t file, int64_t offset, void *data, int64_t bytes,
               std::string &words) override;
  std::string Describe() const override;

private:
  absl::Status Find();
  std::string Words(FileError) const;
  absl::Status Error(FileError, const std::string &doing) const;
  absl::Status Register(const IoFile &);

#define BOA_FUNCTION(name, symbol, result, arguments) EntryOf<result arguments>::type name;
  BOA_CUDA_FILE_FUNCTIONS(BOA_FUNCTION)
#undef BOA_FUNCTION
  Library library;
  const Gpu *gpu = nullptr;
  bool opened = false, registered = false;
  std::string unregistered; // why it is not, if it is not
  char *memory = nullptr;
  int64_t memory_bytes = 0;
  std::vector<FileHandle> handles; // by file
  std::vector<int> descriptors;    // theirs
};

} // namespace boa::cuda

#endif // BOA_RUNTIME_DEVICE_CUDA_FILES_H
