//===- output_file.h - Files and pipes that grow ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Outputs of a run that are written in place: metrics, traces, logs. A write is complete, or it
// fails with an error that names the file. No open blocks. An output may not be a link.
//
// Ownership: an OutputFile owns its descriptor. Threads: one at a time.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_OUTPUT_FILE_H
#define BOA_RUNTIME_IO_OUTPUT_FILE_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstdint>
#include <string>

namespace boa {

/// A file, pipe or device that grows. It keeps its contents until Cut.
class OutputFile {
public:
  /// Creates the file if there is none. /dev/stdout, /dev/stderr and /dev/fd/N are open descriptors
  /// of this process.
  static absl::StatusOr<OutputFile> Open(const std::string &path);

  OutputFile() = default;
  OutputFile(OutputFile &&) noexcept;
  OutputFile &operator=(OutputFile &&) noexcept;
  ~OutputFile();

  absl::Status Append(const void *from, int64_t count);
  /// Keeps the first `size` bytes; Append continues there. Does nothing to a stream.
  absl::Status Cut(int64_t size);
  /// From now on Append adds to the end of the file, also beside other processes.
  absl::Status AddToEnd();
  /// Whether it is a pipe, a device or an open descriptor, which cannot be read back.
  bool is_stream() const { return stream; }
  /// Whether it is a pipe that nobody reads any more.
  bool reader_left() const { return broken_pipe; }

private:
  std::string name;
  int descriptor = -1;
  bool stream = false;
  bool broken_pipe = false;
};

} // namespace boa

#endif // BOA_RUNTIME_IO_OUTPUT_FILE_H
