//===- ring.h - An io_uring and its registrations ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_IO_RING_H
#define BOA_RUNTIME_IO_RING_H

#include "runtime/io/queue.h"

#include "absl/status/status.h"

#include <cstdint>
#include <liburing.h>
#include <optional>
#include <string>
#include <vector>

namespace boa {

/// One io_uring. It knows nothing of transfers, pauses or shutdown: uring.cpp does.
///
/// Ownership: the caller owns the memory of each entry until its completion. It drains the ring
/// before Exit, since io_uring_queue_exit waits for nothing.
/// Threads: the one that called Make, as SINGLE_ISSUER and DEFER_TASKRUN demand. Only
/// `degraded` may be read by others, once Make has returned.
/// Errors: a negated errno. Entries that a failed call did not submit stay in the ring.
class Ring {
public:
  /// `arena` is registered for transfers with fixed buffers; entries may lie outside of it.
  Ring(const std::vector<IoFile> &files, void *arena, int64_t arena_bytes);

  /// Makes the ring. A flag or registration that the kernel refuses is left out and noted.
  /// `fault`: the first attempt fails with this errno.
  absl::Status Make(size_t entries, int fault);
  void Exit() { io_uring_queue_exit(&ring); }
  /// The features that the kernel refused.
  const std::vector<std::string> &degraded() const { return refused; }

  /// Adds an entry, which the next Enter submits. The ring must have room for it. A tag is any
  /// number but the greatest, which liburing uses itself.
  void Add(const IoSegment &, uint64_t tag);
  void AddRead(int fd, uint64_t *value, uint64_t tag);

  /// Submits all entries. Then waits for a completion, or until the given time. -EINTR if the
  /// kernel did not wait.
  int Enter(std::optional<IoClock::time_point> until);
  /// Waits for a completion without submitting anything.
  int Wait() {
    io_uring_cqe *cqe = nullptr;
    return io_uring_wait_cqe(&ring, &cqe);
  }

  /// Calls `use(tag, result)` for each completion that has arrived.
  template <typename Use> void Reap(Use use) {
    io_uring_cqe *cqe = nullptr;
    unsigned head = 0, count = 0;
    io_uring_for_each_cqe(&ring, head, cqe) {
      if (cqe->user_data != LIBURING_UDATA_TIMEOUT)
        use(cqe->user_data, cqe->res);
      ++count;
    }
    io_uring_cq_advance(&ring, count);
  }

  /// Calls `use(tag)` for each entry that was not submitted. It never begins if Enter is not
  /// called again.
  template <typename Use> void Unsubmitted(Use use) const {
    for (unsigned left = io_uring_sq_ready(&ring); left > 0; --left)
      use(ring.sq.sqes[(ring.sq.sqe_tail - left) & ring.sq.ring_mask].user_data);
  }

private:
  absl::Status CheckOperations();
  void RegisterFiles();
  void RegisterArena();
  int BufferPiece(const IoSegment &) const;

  io_uring ring{};
  std::vector<int> descriptors; // by file
  void *const arena;
  const int64_t arena_bytes;
  bool files_registered = false, arena_registered = false;
  std::vector<std::string> refused;
};

} // namespace boa

#endif // BOA_RUNTIME_IO_RING_H
