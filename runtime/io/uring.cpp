//===- uring.cpp - Transfers by io_uring ---------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread owns the ring. Submit leaves a request in the inbox and wakes the thread through
// an eventfd, which the ring reads. The thread submits segments in batches, at most `depth` in
// flight.
//
// A call may be interrupted, or fail because memory or room is short. Then the entries stay in
// the ring, and the thread tries again after a pause. Pauses that add up to
// `IoOptions::patience` without a successful call end the ring with an error. The completion
// queue cannot overflow: it is twice the ring, and the ring has an entry for each slot.
//
// Before it exits the ring the thread waits for the transfers that the kernel still has.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/ring.h"
#include "runtime/support/mutex.h"
#include "runtime/support/threads.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

// Not the greatest one (ring.h). If the kernel cannot wait with a limit, liburing waits for a
// completion of its own with that tag.
constexpr uint64_t kWakeTag = ~uint64_t(1);
// Shortages may pass.
constexpr IoClock::duration kFirstShortagePause = std::chrono::microseconds(100);
constexpr IoClock::duration kLongestShortagePause = std::chrono::milliseconds(20);

class UringBackend : public IoBackend {
public:
  UringBackend(std::vector<IoFile> files, std::vector<IoLink> links, void *arena,
               int64_t arena_bytes, const IoOptions &);
  ~UringBackend() override;

  /// Starts the thread and waits until its ring stands or is refused.
  absl::Status Start();
  void Submit(IoRequest) override;
  void Cancel() override;
  std::string Describe() const override;

private:
  void Main();
  void Work();
  void TakeInbox();
  void StartSegments();
  void ArmWake();
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  int SubmitAndWait();
  int EnterRing();
  bool Stalled(int error);
  int Reap();
  int Complete(uint64_t tag, int result);
  void Drain();
  void GiveUp(int error);
  void Refuse();

  const IoOptions options;

  // The thread's own.
  Ring ring;
  IoQueue queue;
  std::vector<IoSegment> slots; // by the tag of a submission
  std::vector<int> free_slots;
  bool wake_armed = false, draining = false;
  uint64_t wake_value = 0;
  int64_t submits = 0;                           // calls that submit
  IoClock::duration pause = kFirstShortagePause; // before the next, after a shortage
  IoClock::duration paused{0};                   // since one succeeded

  int event = -1;
  std::thread thread;
  std::promise<absl::Status> ready;

  Mutex mutex;
  CondVar arrived; // for a thread without a ring
  std::vector<IoRequest> inbox ABSL_GUARDED_BY(mutex);
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool cancel ABSL_GUARDED_BY(mutex) = false;
  bool woken ABSL_GUARDED_BY(mutex) = false; // the eventfd is signalled
};

UringBackend::UringBackend(std::vector<IoFile> files, std::vector<IoLink> links, void *arena,
                           int64_t arena_bytes, const IoOptions &options)
    : options(options), ring(files, arena, arena_bytes),
      queue(std::move(files), std::move(links), options, IoClock::now()), slots(queue.Capacity()) {
  for (int slot = queue.Capacity() - 1; slot >= 0; --slot)
    free_slots.push_back(slot);
}

UringBackend::~UringBackend() {
  if (thread.joinable()) {
    {
      MutexLock lock(mutex);
      stop = true;
      Wake();
    }
    thread.join();
  }
  if (event >= 0)
    close(event);
}

absl::Status UringBackend::Start() {
  event = eventfd(0, EFD_CLOEXEC);
  if (event < 0)
    return absl::ErrnoToStatus(errno, "cannot make an eventfd");
  if (absl::Status status = StartThread("the I/O thread", thread, [this] { Main(); }); !status.ok())
    return status;
  return ready.get_future().get();
}

/// Makes the thread look into the inbox.
void UringBackend::Wake() {
  arrived.NotifyOne();
  if (woken)
    return;
  woken = true;
  uint64_t one = 1;
  while (write(event, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void UringBackend::Submit(IoRequest request) {
  MutexLock lock(mutex);
  inbox.push_back(std::move(request));
  Wake();
}

void UringBackend::Cancel() {
  MutexLock lock(mutex);
  cancel = true;
  Wake();
}

std::string UringBackend::Describe() const {
  std::string text = absl::StrCat("io_uring (depth ", options.depth);
  if (!ring.degraded().empty())
    absl::StrAppend(&text, ", without ", absl::StrJoin(ring.degraded(), ", "));
  return text + ")";
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

void UringBackend::Main() {
  // Signals go to other threads: here each would interrupt the ring.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  // Two entries beside the slots: the read of the eventfd, and liburing's own.
  absl::Status status = ring.Make(slots.size() + 2, options.faults.ring_error);
  ready.set_value(status);
  if (status.ok())
    Work();
}

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
    // Completions count even if the ring is lost.
    if (int other = Reap(); error == 0)
      error = other;
    if (error != 0) {
      GiveUp(error);
      return;
    }
  }
  Drain();
  ring.Exit();
}

void UringBackend::TakeInbox() {
  std::vector<IoRequest> requests;
  bool aborts = false;
  {
    MutexLock lock(mutex);
    requests.swap(inbox);
    draining = stop;
    aborts = std::exchange(cancel, false);
  }
  for (IoRequest &request : requests)
    queue.Add(std::move(request));
  if (aborts)
    queue.Abort(absl::CancelledError("not begun"));
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
      int slot = free_slots.back();
      free_slots.pop_back();
      ring.Add(*segment, uint64_t(slot));
      slots[slot] = std::move(*segment);
    }
  }
}

void UringBackend::ArmWake() {
  if (!wake_armed)
    ring.AddRead(event, &wake_value, kWakeTag);
  wake_armed = true;
}

/// Submits, then waits for a completion or for the time of the next segment.
/// Returns an errno that leaves the ring useless, else 0.
int UringBackend::SubmitAndWait() {
  int result = EnterRing();
  if (result < 0)
    return Stalled(-result) ? 0 : -result;
  pause = kFirstShortagePause;
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
  pause = std::min(2 * pause, kLongestShortagePause);
  return true;
}

/// The call itself; a negated errno, or at least 0.
int UringBackend::EnterRing() {
  const IoFaults &faults = options.faults;
  if (int64_t call = submits++ - faults.submit_fail_at; call >= 0 && call < faults.submit_fails)
    return -faults.submit_error;
  // Without a free slot only a completion lets a segment start.
  if (free_slots.empty())
    return ring.Enter(std::nullopt);
  return ring.Enter(queue.NextStart(IoClock::now()));
}

/// Returns an errno that leaves the ring useless, else 0.
int UringBackend::Reap() {
  int error = 0;
  ring.Reap([&](uint64_t tag, int result) {
    if (int other = Complete(tag, result); error == 0)
      error = other;
  });
  return error;
}

int UringBackend::Complete(uint64_t tag, int result) {
  if (tag == kWakeTag) {
    wake_armed = false;
    MutexLock lock(mutex);
    woken = false;
    // After any other error the next read would fail too, for ever.
    return result >= 0 || result == -EINTR || result == -EAGAIN ? 0 : -result;
  }
  int slot = int(tag);
  IoSegment segment = std::exchange(slots[slot], {});
  free_slots.push_back(slot);
  queue.Finish(std::move(segment), result, IoClock::now());
  return 0;
}

/// Waits until the kernel has no transfer and no read of the eventfd, so that their memory
/// is free. Entries that were not submitted never begin. Completions may arrive even where the
/// kernel refuses to wait for them; this looks for them until the patience ends.
void UringBackend::Drain() {
  std::vector<bool> submitted(slots.size(), true);
  ring.Unsubmitted([&](uint64_t tag) {
    if (tag == kWakeTag)
      wake_armed = false;
    else if (tag < slots.size())
      submitted[tag] = false;
  });
  {
    MutexLock lock(mutex);
    Wake(); // completes the read of the eventfd
  }
  auto in_kernel = [&] {
    for (size_t slot = 0; slot < slots.size(); ++slot)
      if (submitted[slot] && slots[slot].transfer)
        return true;
    return wake_armed;
  };
  paused = {};
  for (pause = kFirstShortagePause; in_kernel(); Reap()) {
    if (ring.Wait() < 0 && !Stalled(EINTR))
      return;
  }
}

/// The ring is lost. Fails all transfers, and those in the kernel when they are back.
void UringBackend::GiveUp(int error) {
  queue.Abort(absl::ErrnoToStatus(error, "io_uring failed"));
  Drain();
  ring.Exit();
  for (IoSegment &segment : slots)
    if (segment.transfer)
      queue.Finish(std::exchange(segment, {}), -int64_t(error), IoClock::now());
  Refuse();
}

/// Answers every further request with the error, until the end. Does not read the eventfd: a
/// read of the lost ring may still take the next signal.
void UringBackend::Refuse() {
  while (true) {
    TakeInbox();
    RunCompletions(queue.TakeDone());
    MutexLock lock(mutex);
    if (draining && inbox.empty())
      return;
    while (inbox.empty() && !stop)
      arrived.Wait(mutex);
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
