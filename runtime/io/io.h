//===- io.h - Asynchronous transfers to and from files -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One interface, two backends: io_uring, and threads with pread and pwrite if the kernel
// refuses it. A backend owns its thread or threads. Requests complete on them, in any order.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_H
#define BOA_RUNTIME_IO_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace boa {

/// A file of transfers. The caller owns the descriptor and keeps it open longer than the
/// backend. It is opened with O_DIRECT if the file system has that.
struct IoFile {
  int fd = -1;
  std::string path; // for messages
  int32_t link = 0; // files of one link share its limits: one ssd path
};

/// A link's limits, in bytes/s; 0: none. Reads and writes are apart.
struct IoLink {
  int64_t read = 0, write = 0;
};

/// One transfer. `data`, `offset` and `bytes` are multiples of 4096.
///
/// `done` runs once, on a backend thread, and must not block. Either all bytes have moved, or
/// its error names the file and the offset. The caller owns the memory. Until then it stays
/// valid, and nobody changes it during a write.
struct IoRequest {
  bool write = false;
  int32_t file = 0;
  int64_t offset = 0, bytes = 0;
  void *data = nullptr;
  std::function<void(absl::Status)> done;
  /// The queue of a link and a direction starts the earliest deadline first, even before the rest
  /// of a transfer that has begun. Equal ones start in order of Submit.
  int64_t deadline = 0;
};

/// Memory of a device that pread and pwrite do not reach. Moves bytes between it and the
/// backend's files. Outlives the backend.
class FarMemory {
public:
  virtual ~FarMemory() = default;
  /// Whether this address is in it. A request lies in it as a whole or not at all.
  virtual bool Holds(const void *data) const = 0;
  /// Runs on any thread of the backend, on several at once, and blocks. Returns the bytes moved,
  /// or a negated errno and perhaps its cause in `words`. `file`: its number.
  virtual int64_t Move(bool write, int32_t file, int64_t offset, void *data, int64_t bytes,
                       std::string &words) = 0;
  /// "the GPU's memory through cuFile"
  virtual std::string Describe() const = 0;
};

/// Faults that tests inject.
struct IoFaults {
  int64_t short_every = 0; // every nth transfer moves half
  int64_t fail_at = -1;    // the nth transfer fails with `error`
  int64_t fails = 1;       // and as many as this from there on
  int error = 0;           // errno, for example EIO or ENOSPC
  // Of io_uring: its creation fails with `ring_error`. From the nth on, `submit_fails` calls that
  // submit fail with `submit_error`.
  int ring_error = 0, submit_error = 0;
  int64_t submit_fail_at = 0, submit_fails = 0;
};

struct IoOptions {
  bool prefer_threads = false;     // as the environment's BOA_IO=threads
  int depth = 32;                  // segments in flight, for each link
  int64_t segment_bytes = 1 << 20; // a transfer is split into segments
  FarMemory *far = nullptr;        // then threads move all, so that a path is one queue
  // An interruption or a shortage becomes an error after this time without progress.
  std::chrono::steady_clock::duration patience = std::chrono::seconds(10);
  IoFaults faults;
};

class IoBackend {
public:
  virtual ~IoBackend() = default;
  /// Starts a transfer. From any thread; does not block on the transfer.
  virtual void Submit(IoRequest) = 0;
  /// Transfers that wait end with kCancelled, and so do all that follow. From any thread.
  virtual void Cancel() {}
  /// "io_uring" or "threads", and the features that are missing. For one line at start.
  virtual std::string Describe() const = 0;
  /// For a backend without a thread of its own (runtime/device/scheduler.h). Pending: whether
  /// transfers are under way. Advance completes one of them on this thread.
  virtual bool Pending() const { return false; }
  virtual void Advance() {}
};

/// io_uring where the kernel allows it, else threads. `arena` is registered for
/// fixed-buffer transfers where possible; requests may lie outside it.
absl::StatusOr<std::unique_ptr<IoBackend>> CreateIoBackend(std::vector<IoFile> files,
                                                           std::vector<IoLink> links, void *arena,
                                                           int64_t arena_bytes, const IoOptions &);

/// Backends by themselves, for the tests.
absl::StatusOr<std::unique_ptr<IoBackend>> CreateUringBackend(std::vector<IoFile> files,
                                                              std::vector<IoLink> links,
                                                              void *arena, int64_t arena_bytes,
                                                              const IoOptions &);
/// `why`: the reason that there is no io_uring, for the description.
absl::StatusOr<std::unique_ptr<IoBackend>> CreateThreadBackend(std::vector<IoFile> files,
                                                               std::vector<IoLink> links,
                                                               const IoOptions &,
                                                               std::string why = "");

} // namespace boa

#endif // BOA_RUNTIME_IO_H
