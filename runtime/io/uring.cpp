//===- uring.cpp - Transfers by io_uring ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread owns the ring: it alone makes it, submits to it and reaps from it,
// as SINGLE_ISSUER and DEFER_TASKRUN demand. Submit leaves a request in the
// inbox and wakes the thread through an eventfd on which the ring holds a read.
// Segments that may start are submitted in batches, at most `depth` in flight.
//
// What the kernel refuses is done without, one thing at a time: the flags, the
// registered files, the registered buffers. Describe says which.
//
// Where a call fails for want of memory or of room, or is interrupted, the entries
// stay in the ring, and the thread tries again after a pause. Pauses that add up to
// `IoOptions::patience` without a successful call end the ring with an error. The
// completion queue cannot overflow: it is twice the ring, which has an entry for all
// that is ever in flight.
//
// Before the ring goes the thread waits for the transfers that the kernel still has:
// io_uring_queue_exit does not.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/queue.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <future>
#include <liburing.h>
#include <mutex>
#include <pthread.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

constexpr int64_t kBufferPiece = int64_t(1) << 30; // the kernel's limit
// Not the greatest one: where the kernel cannot wait with a limit, liburing
// waits for a completion of its own, which has that tag.
constexpr uint64_t kWakeTag = ~uint64_t(1);
constexpr uint64_t kTimeoutTag = LIBURING_UDATA_TIMEOUT;
// Shortages may pass.
constexpr IoClock::duration kFirstPause = std::chrono::microseconds(100);
constexpr IoClock::duration kLongestPause = std::chrono::milliseconds(20);

class UringBackend : public IoBackend {
public:
  UringBackend(std::vector<IoFile> files, std::vector<IoLink> links, void *arena,
               int64_t arena_bytes, const IoOptions &);
  ~UringBackend() override;

  /// Starts the thread and waits until its ring stands or is refused.
  absl::Status Start();
  void Submit(IoRequest) override;
  std::string Describe() const override;

private:
  static void *ThreadMain(void *backend);
  absl::Status SetUp();
  absl::Status MakeRing();
  absl::Status CheckOperations();
  void RegisterFiles();
  void RegisterArena();

  void Work();
  void TakeInbox();
  void StartSegments();
  void StartSegment(IoSegment);
  void Prepare(io_uring_sqe *, const IoSegment &);
  int BufferPiece(const IoSegment &) const;
  void ArmWake();
  void Wake();
  int SubmitAndWait();
  int EnterRing();
  bool Stalled(int error);
  int Reap();
  int Complete(const io_uring_cqe &);
  void Drain();
  void GiveUp(int error);
  void Refuse();

  const std::vector<IoFile> files;
  void *const arena;
  const int64_t arena_bytes;
  const IoOptions options;

  // The thread's own.
  io_uring ring{};
  IoQueue queue;
  std::vector<IoSegment> slots; // by the tag of a submission
  std::vector<int> free_slots;
  bool files_registered = false, arena_registered = false;
  bool wake_armed = false, draining = false;
  uint64_t wake_value = 0;
  int64_t submits = 0;                   // calls that submit
  IoClock::duration pause = kFirstPause; // before the next, after a shortage
  IoClock::duration paused{0};           // since one succeeded

  std::vector<std::string> degraded; // written before Start returns
  int event = -1;
  pthread_t thread{};
  bool started = false;
  std::promise<absl::Status> ready;

  std::mutex mutex;
  std::condition_variable arrived; // for a thread without a ring
  std::vector<IoRequest> inbox;    // under mutex
  bool stop = false;               // under mutex
  bool woken = false;              // under mutex: the eventfd is signalled
};

UringBackend::UringBackend(std::vector<IoFile> the_files, std::vector<IoLink> links, void *arena,
                           int64_t arena_bytes, const IoOptions &options)
    : files(std::move(the_files)), arena(arena), arena_bytes(arena_bytes), options(options),
      queue(files, std::move(links), options, IoClock::now()), slots(queue.Capacity()) {
  for (int slot = queue.Capacity() - 1; slot >= 0; --slot)
    free_slots.push_back(slot);
}

UringBackend::~UringBackend() {
  if (started) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
      Wake();
    }
    pthread_join(thread, nullptr);
  }
  if (event >= 0)
    close(event);
}

absl::Status UringBackend::Start() {
  event = eventfd(0, EFD_CLOEXEC);
  if (event < 0)
    return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  int error = pthread_create(&thread, nullptr, ThreadMain, this);
  if (error != 0)
    return absl::ErrnoToStatus(error, "cannot start the I/O thread");
  started = true;
  return ready.get_future().get();
}

/// With the mutex held: makes the thread look into the inbox.
void UringBackend::Wake() {
  arrived.notify_one();
  if (woken)
    return;
  woken = true;
  uint64_t one = 1;
  while (write(event, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void UringBackend::Submit(IoRequest request) {
  std::lock_guard<std::mutex> lock(mutex);
  inbox.push_back(std::move(request));
  Wake();
}

std::string UringBackend::Describe() const {
  std::string text = absl::StrCat("io_uring (depth ", options.depth);
  if (!degraded.empty())
    absl::StrAppend(&text, ", without ", absl::StrJoin(degraded, ", "));
  return text + ")";
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

void *UringBackend::ThreadMain(void *data) {
  auto *backend = static_cast<UringBackend *>(data);
  // Signals go to other threads: here each would interrupt the ring.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  absl::Status status = backend->SetUp();
  backend->ready.set_value(status);
  if (status.ok())
    backend->Work();
  return nullptr;
}

absl::Status UringBackend::MakeRing() {
  struct Attempt {
    unsigned flags;
    const char *missing;
  };
  const Attempt attempts[] = {
      {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, nullptr},
      {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN, "DEFER_TASKRUN"},
      {IORING_SETUP_COOP_TASKRUN, "SINGLE_ISSUER"},
      {0, "COOP_TASKRUN"}};
  int error = options.faults.ring_error;
  for (const Attempt &attempt : attempts) {
    if (error != 0 && error != EINVAL)
      break;
    if (attempt.missing)
      degraded.push_back(attempt.missing);
    // Two more than the segments: the read of the eventfd, and liburing's own.
    error = -io_uring_queue_init(unsigned(slots.size()) + 2, &ring, attempt.flags);
    if (error == 0)
      return CheckOperations();
  }
  return absl::ErrnoToStatus(error, "the kernel refuses io_uring");
}

/// Kernels that have a ring but not all that is asked of it.
absl::Status UringBackend::CheckOperations() {
  io_uring_probe *probe = io_uring_get_probe_ring(&ring);
  bool all = probe != nullptr;
  for (int operation :
       {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED})
    all = all && io_uring_opcode_supported(probe, operation);
  io_uring_free_probe(probe);
  if (all)
    return absl::OkStatus();
  io_uring_queue_exit(&ring);
  return absl::UnimplementedError("the kernel's io_uring cannot read and write files");
}

void UringBackend::RegisterFiles() {
  std::vector<int> descriptors;
  for (const IoFile &file : files)
    descriptors.push_back(file.fd);
  files_registered =
      !descriptors.empty() &&
      io_uring_register_files(&ring, descriptors.data(), unsigned(descriptors.size())) == 0;
  if (!files_registered && !descriptors.empty())
    degraded.push_back("registered files");
}

void UringBackend::RegisterArena() {
  if (!arena || arena_bytes <= 0)
    return;
  std::vector<iovec> pieces;
  for (int64_t offset = 0; offset < arena_bytes; offset += kBufferPiece)
    pieces.push_back({static_cast<char *>(arena) + offset,
                      size_t(std::min(kBufferPiece, arena_bytes - offset))});
  int error = -io_uring_register_buffers(&ring, pieces.data(), unsigned(pieces.size()));
  arena_registered = error == 0;
  if (error == ENOMEM)
    degraded.push_back("registered buffers: raise `ulimit -l`");
  else if (error != 0)
    degraded.push_back(absl::StrCat("registered buffers: ", std::strerror(error)));
}

absl::Status UringBackend::SetUp() {
  if (absl::Status status = MakeRing(); !status.ok())
    return status;
  RegisterFiles();
  RegisterArena();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void UringBackend::Work() {
  while (true) {
    TakeInbox();
    StartSegments();
    // A callback may submit: look into the inbox again before the end.
    if (auto done = queue.TakeDone(); !done.empty()) {
      RunCompletions(std::move(done));
      continue;
    }
    if (draining && queue.Idle())
      break;
    ArmWake();
    int error = SubmitAndWait();
    // What has completed counts even where the ring is of no more use.
    if (int other = Reap(); error == 0)
      error = other;
    if (error != 0) {
      GiveUp(error);
      return;
    }
  }
  Drain();
  io_uring_queue_exit(&ring);
}

void UringBackend::TakeInbox() {
  std::vector<IoRequest> requests;
  {
    std::lock_guard<std::mutex> lock(mutex);
    requests.swap(inbox);
    draining = stop;
  }
  for (IoRequest &request : requests)
    queue.Add(std::move(request));
}

void UringBackend::StartSegments() {
  IoClock::time_point now = IoClock::now();
  while (!free_slots.empty()) {
    std::optional<IoSegment> segment = queue.Pop(now);
    if (!segment)
      return;
    if (segment->error != 0) {
      int error = segment->error;
      queue.Finish(std::move(*segment), -int64_t(error), now);
    } else {
      StartSegment(std::move(*segment));
    }
  }
}

void UringBackend::StartSegment(IoSegment segment) {
  int slot = free_slots.back();
  free_slots.pop_back();
  // Never null: the ring has an entry for each slot and one for the eventfd.
  io_uring_sqe *sqe = io_uring_get_sqe(&ring);
  Prepare(sqe, segment);
  io_uring_sqe_set_data64(sqe, uint64_t(slot));
  slots[slot] = std::move(segment);
}

/// The registered piece that holds all of a segment, or -1.
int UringBackend::BufferPiece(const IoSegment &segment) const {
  if (!arena_registered)
    return -1;
  int64_t begin =
      int64_t(reinterpret_cast<intptr_t>(segment.data) - reinterpret_cast<intptr_t>(arena));
  int64_t last = begin + segment.attempt - 1;
  if (begin < 0 || last >= arena_bytes || begin / kBufferPiece != last / kBufferPiece)
    return -1;
  return int(begin / kBufferPiece);
}

void UringBackend::Prepare(io_uring_sqe *sqe, const IoSegment &segment) {
  const IoRequest &request = segment.transfer->request;
  int fd = files_registered ? request.file : files[request.file].fd;
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
}

void UringBackend::ArmWake() {
  if (wake_armed)
    return;
  io_uring_sqe *sqe = io_uring_get_sqe(&ring);
  io_uring_prep_read(sqe, event, &wake_value, sizeof(wake_value), 0);
  io_uring_sqe_set_data64(sqe, kWakeTag);
  wake_armed = true;
}

/// Submits, then waits for a completion or for the time of the next segment.
/// Returns an errno that leaves the ring useless, else 0.
int UringBackend::SubmitAndWait() {
  int result = EnterRing();
  if (result < 0)
    return Stalled(-result) ? 0 : -result;
  pause = kFirstPause;
  paused = {};
  return 0;
}

/// Pauses after an error that may pass; false: it does not, or lasts too long. Time in the
/// kernel does not count: a slow disk and rare signals are no stall.
bool UringBackend::Stalled(int error) {
  const bool may_pass = error == EAGAIN || error == ENOMEM || error == EBUSY || error == EINTR;
  if (!may_pass || paused >= options.patience)
    return false;
  std::this_thread::sleep_for(pause);
  paused += pause;
  pause = std::min(2 * pause, kLongestPause);
  return true;
}

/// The call itself; a negated errno, or at least 0.
int UringBackend::EnterRing() {
  const IoFaults &faults = options.faults;
  if (int64_t call = submits++ - faults.submit_fail_at; call >= 0 && call < faults.submit_fails)
    return -faults.submit_error;
  IoClock::time_point now = IoClock::now();
  std::optional<IoClock::time_point> next;
  if (!free_slots.empty())
    next = queue.NextStart(now);
  if (!next)
    return io_uring_submit_and_wait(&ring, 1);
  auto wait = std::max(*next - now, IoClock::duration(0));
  int64_t nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(wait).count();
  __kernel_timespec time{nanoseconds / 1000000000, nanoseconds % 1000000000};
  io_uring_cqe *cqe = nullptr;
  int result = io_uring_submit_and_wait_timeout(&ring, &cqe, 1, &time, nullptr);
  if (result != -ETIME)
    return result;
  return IoClock::now() >= *next ? 0 : -EINTR; // the kernel did not wait
}

/// Returns an errno that leaves the ring useless, else 0.
int UringBackend::Reap() {
  io_uring_cqe *cqe = nullptr;
  unsigned head = 0, count = 0;
  int error = 0;
  io_uring_for_each_cqe(&ring, head, cqe) {
    if (int other = Complete(*cqe); error == 0)
      error = other;
    ++count;
  }
  io_uring_cq_advance(&ring, count);
  return error;
}

int UringBackend::Complete(const io_uring_cqe &cqe) {
  if (cqe.user_data == kTimeoutTag)
    return 0;
  if (cqe.user_data == kWakeTag) {
    wake_armed = false;
    std::lock_guard<std::mutex> lock(mutex);
    woken = false;
    // Else it would be armed and fail for ever.
    return cqe.res >= 0 || cqe.res == -EINTR || cqe.res == -EAGAIN ? 0 : -cqe.res;
  }
  int slot = int(cqe.user_data);
  IoSegment segment = std::exchange(slots[slot], {});
  free_slots.push_back(slot);
  queue.Finish(std::move(segment), cqe.res, IoClock::now());
  return 0;
}

/// Waits until the kernel has no transfer and no read of the eventfd, so that their memory
/// is free. Entries that were not submitted never begin. Completions may arrive even where the
/// kernel refuses to wait for them; this looks for them until the patience ends.
void UringBackend::Drain() {
  std::vector<bool> submitted(slots.size(), true);
  for (unsigned left = io_uring_sq_ready(&ring); left > 0; --left) {
    const io_uring_sqe &sqe = ring.sq.sqes[(ring.sq.sqe_tail - left) & ring.sq.ring_mask];
    if (sqe.user_data == kWakeTag)
      wake_armed = false;
    else if (sqe.user_data < slots.size())
      submitted[sqe.user_data] = false;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    Wake(); // completes the read of the eventfd
  }
  auto in_kernel = [&] {
    for (size_t slot = 0; slot < slots.size(); ++slot)
      if (submitted[slot] && slots[slot].transfer)
        return true;
    return wake_armed;
  };
  paused = {};
  for (pause = kFirstPause; in_kernel(); Reap()) {
    io_uring_cqe *cqe = nullptr;
    int error = -io_uring_wait_cqe(&ring, &cqe);
    if (error > 0 && !Stalled(EINTR))
      return;
  }
}

/// The ring is lost: fails all transfers, those in the kernel when they are back.
void UringBackend::GiveUp(int error) {
  queue.Abort(absl::ErrnoToStatus(error, "io_uring failed"));
  Drain();
  io_uring_queue_exit(&ring);
  for (IoSegment &segment : slots)
    if (segment.transfer)
      queue.Finish(std::exchange(segment, {}), -int64_t(error), IoClock::now());
  Refuse();
}

/// Answers every further request with the error, until the end. Does not read
/// the eventfd: a read of the ring may be left that takes what is written there.
void UringBackend::Refuse() {
  while (true) {
    TakeInbox();
    RunCompletions(queue.TakeDone());
    std::unique_lock<std::mutex> lock(mutex);
    if (draining && inbox.empty())
      return;
    arrived.wait(lock, [&] { return !inbox.empty() || stop; });
  }
}

} // namespace

absl::StatusOr<std::unique_ptr<IoBackend>> CreateUringBackend(std::vector<IoFile> files,
                                                              std::vector<IoLink> links,
                                                              void *arena, int64_t arena_bytes,
                                                              const IoOptions &given) {
  auto backend = std::make_unique<UringBackend>(std::move(files), std::move(links), arena,
                                                arena_bytes, NormalizeIoOptions(given));
  if (absl::Status status = backend->Start(); !status.ok())
    return status;
  return backend;
}

} // namespace boa
