//===- ring.cpp - An io_uring and its registrations -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/io/ring.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace boa {

static constexpr int64_t kBufferPiece = int64_t(1) << 30; // the kernel's limit

Ring::Ring(const std::vector<IoFile> &files, void *arena, int64_t arena_bytes)
    : arena(arena), arena_bytes(arena_bytes) {
  for (const IoFile &file : files)
    descriptors.push_back(file.fd);
}

//===----------------------------------------------------------------------===//
// Setup
//===----------------------------------------------------------------------===//

absl::Status Ring::Make(size_t entries, int fault) {
  struct Attempt {
    unsigned flags;
    const char *missing;
  };
  const Attempt attempts[] = {
      {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, nullptr},
      {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN, "DEFER_TASKRUN"},
      {IORING_SETUP_COOP_TASKRUN, "SINGLE_ISSUER"},
      {0, "COOP_TASKRUN"}};
  int error = fault;
  for (const Attempt &attempt : attempts) {
    if (error != 0 && error != EINVAL)
      break;
    if (attempt.missing)
      refused.push_back(attempt.missing);
    error = -io_uring_queue_init(unsigned(entries), &ring, attempt.flags);
    if (error != 0)
      continue;
    if (absl::Status status = CheckOperations(); !status.ok())
      return status;
    RegisterFiles();
    RegisterArena();
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(error, "the kernel refuses io_uring");
}

/// Some kernels have a ring but not all of these operations.
absl::Status Ring::CheckOperations() {
  io_uring_probe *probe = io_uring_get_probe_ring(&ring);
  bool all = probe != nullptr;
  for (int operation :
       {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED})
    all = all && io_uring_opcode_supported(probe, operation);
  io_uring_free_probe(probe);
  if (all)
    return absl::OkStatus();
  Exit();
  return absl::UnimplementedError("the kernel's io_uring cannot read and write files");
}

void Ring::RegisterFiles() {
  files_registered =
      !descriptors.empty() &&
      io_uring_register_files(&ring, descriptors.data(), unsigned(descriptors.size())) == 0;
  if (!files_registered && !descriptors.empty())
    refused.push_back("registered files");
}

void Ring::RegisterArena() {
  if (!arena || arena_bytes <= 0)
    return;
  std::vector<iovec> pieces;
  for (int64_t offset = 0; offset < arena_bytes; offset += kBufferPiece)
    pieces.push_back({static_cast<char *>(arena) + offset,
                      size_t(std::min(kBufferPiece, arena_bytes - offset))});
  int error = -io_uring_register_buffers(&ring, pieces.data(), unsigned(pieces.size()));
  arena_registered = error == 0;
  if (error == ENOMEM)
    refused.push_back("registered buffers: raise `ulimit -l`");
  else if (error != 0)
    refused.push_back(absl::StrCat("registered buffers: ", std::strerror(error)));
}

//===----------------------------------------------------------------------===//
// Submission
//===----------------------------------------------------------------------===//

/// The registered piece that holds all of a segment, or -1.
int Ring::BufferPiece(const IoSegment &segment) const {
  if (!arena_registered)
    return -1;
  int64_t begin =
      int64_t(reinterpret_cast<intptr_t>(segment.data) - reinterpret_cast<intptr_t>(arena));
  int64_t last = begin + segment.attempt - 1;
  if (begin < 0 || last >= arena_bytes || begin / kBufferPiece != last / kBufferPiece)
    return -1;
  return int(begin / kBufferPiece);
}

void Ring::Add(const IoSegment &segment, uint64_t tag) {
  io_uring_sqe *sqe = io_uring_get_sqe(&ring);
  const IoRequest &request = segment.transfer->request;
  int fd = files_registered ? request.file : descriptors[request.file];
  auto bytes = unsigned(segment.attempt);
  auto offset = uint64_t(segment.offset);
  int piece = BufferPiece(segment);
  if (request.write && piece >= 0)
    io_uring_prep_write_fixed(sqe, fd, segment.data, bytes, offset, piece);
  else if (request.write)
    io_uring_prep_write(sqe, fd, segment.data, bytes, offset);
  else if (piece >= 0)
    io_uring_prep_read_fixed(sqe, fd, segment.data, bytes, offset, piece);
  else
    io_uring_prep_read(sqe, fd, segment.data, bytes, offset);
  if (files_registered)
    sqe->flags |= IOSQE_FIXED_FILE;
  io_uring_sqe_set_data64(sqe, tag);
}

void Ring::AddRead(int fd, uint64_t *value, uint64_t tag) {
  io_uring_sqe *sqe = io_uring_get_sqe(&ring);
  io_uring_prep_read(sqe, fd, value, sizeof(*value), 0);
  io_uring_sqe_set_data64(sqe, tag);
}

int Ring::Enter(std::optional<IoClock::time_point> until) {
  if (!until)
    return io_uring_submit_and_wait(&ring, 1);
  auto wait = std::max(*until - IoClock::now(), IoClock::duration(0));
  int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(wait).count();
  __kernel_timespec time{nanoseconds / 1000000000, nanoseconds % 1000000000};
  io_uring_cqe *cqe = nullptr;
  int result = io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &time, nullptr);
  if (result != -ETIME)
    return result;
  return IoClock::now() >= *until ? 0 : -EINTR; // the kernel did not wait
}

} // namespace boa
