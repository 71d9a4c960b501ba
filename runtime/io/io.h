//===- io.h - Asynchronous transfers to and from files -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One interface, two backends: io_uring, and threads with pread/pwrite where the
// kernel refuses it. A backend owns its thread or threads; requests complete on
// them, in any order.
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

/// A file that transfers go to. The descriptor is the caller's, opened with
/// O_DIRECT where the file system has it, and stays open longer than the backend.
struct IoFile {
  int fd = -1;
  std::string path; // for messages
  int32_t link = 0; // files of one link share its limits: one ssd path
};

/// A link's limits, in bytes/s; 0: none. Reads and writes are apart.
struct IoLink {
  int64_t read = 0, write = 0;
};

/// One transfer. `data`, `offset` and `bytes` are multiples of 4096. `done` runs
/// on a backend thread, once, with all bytes moved or an error that says which
/// file and offset; it must not block. The memory is the caller's, and must stay
/// valid and, for a write, unchanged until then.
struct IoRequest {
  bool write = false;
  int32_t file = 0;
  int64_t offset = 0, bytes = 0;
  void *data = nullptr;
  std::function<void(absl::Status)> done;
  /// Of those that wait for the same link and direction the least goes first,
  /// and before what is left of one that has begun; equal ones in order of Submit.
  int64_t deadline = 0;
};

/// Memory that pread and pwrite do not reach, of a device, and who moves bytes between it and
/// the backend's files. Outlives the backend.
class FarMemory {
public:
  virtual ~FarMemory() = default;
  /// Whether this address is in it. A request lies in it as a whole or not at all.
  virtual bool Holds(const void *data) const = 0;
  /// On any thread of the backend, several at once; blocks. As pread and pwrite: bytes moved,
  /// or a negated errno, with `words` where more is known of it. `file`: its number.
  virtual int64_t Move(bool write, int32_t file, int64_t offset, void *data, int64_t bytes,
                       std::string &words) = 0;
  /// "the GPU's memory through cuFile"
  virtual std::string Describe() const = 0;
};

/// What tests make go wrong on purpose.
struct IoFaults {
  int64_t short_every = 0; // every nth transfer moves half
  int64_t fail_at = -1;    // the nth transfer fails with `error`
  int64_t fails = 1;       // and as many as this from there on
  int error = 0;           // errno, for example EIO or ENOSPC
  // Of io_uring: its creation fails with an errno, or `submit_fails` calls that
  // submit do, from the nth on.
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
  /// "io_uring" or "threads", and what was degraded, for one line at start.
  virtual std::string Describe() const = 0;
  /// For a backend without a thread of its own (runtime/device/scheduler.h): whether
  /// transfers are under way, and lets one of them complete on this thread.
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
/// `why`, if given, is part of the description: why there is no io_uring.
absl::StatusOr<std::unique_ptr<IoBackend>> CreateThreadBackend(std::vector<IoFile> files,
                                                               std::vector<IoLink> links,
                                                               const IoOptions &,
                                                               std::string why = "");

} // namespace boa

#endif // BOA_RUNTIME_IO_H
