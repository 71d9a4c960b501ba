//===- calls.cpp - System calls that are recorded and fail ----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/faults/calls.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <dlfcn.h>
#include <fcntl.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <mutex>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace boa::calls {
namespace {

std::mutex mutex; // of all below
Fault fault;
int64_t count = 0;
bool recording = false;
std::vector<std::string> lines;
uint32_t direct_alignment = 0;

std::string LastPart(const std::string &path) {
  return path.substr(path.find_last_of('/') + 1); // all of it where there is no slash
}

std::string NameOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  return size < 0 ? "?" : LastPart(std::string(path, size_t(size)));
}

/// Records a call, but for one of an empty `on`, and says what goes wrong with it.
Fault Begin(const std::string &call, const std::string &on, bool merge = false) {
  std::lock_guard<std::mutex> lock(mutex);
  const std::string line = call + " " + on;
  if (recording && !on.empty() && !(merge && !lines.empty() && lines.back() == line))
    lines.push_back(line);
  if (fault.call != call)
    return {};
  const int64_t nth = count++ - fault.at;
  return nth >= 0 && nth < fault.times ? fault : Fault{};
}

/// The function of the C library.
template <typename Function> Function *Next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

template <typename Call> auto Unless(const Fault &now, Call call) -> decltype(call()) {
  if (now.error == 0)
    return call();
  errno = now.error;
  return -1;
}

size_t Moved(const Fault &now, size_t bytes) {
  return now.bytes > 0 ? std::min(bytes, size_t(now.bytes)) : bytes;
}

} // namespace

void Inject(Fault next) {
  std::lock_guard<std::mutex> lock(mutex);
  fault = std::move(next);
  count = 0;
}
void Clear() { Inject({}); }

void Record() {
  std::lock_guard<std::mutex> lock(mutex);
  lines.clear();
  recording = true;
}
std::vector<std::string> Recorded() {
  std::lock_guard<std::mutex> lock(mutex);
  recording = false;
  return lines;
}

void SetDirectAlignment(uint32_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  direct_alignment = bytes;
}

bool RefuseRingOnThisThread(int error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t(error) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

//===----------------------------------------------------------------------===//
// A ring whose calls pass through a handler of SIGSYS
//===----------------------------------------------------------------------===//

#ifdef __x86_64__
namespace {

thread_local RingFault ring_fault;
io_cqring_offsets ring_offsets; // the same of all rings
long (*const raw_syscall)(long, ...) = Next<long(long, ...)>("syscall");

/// Puts the error into new completions.
void FailCompletions(int ring, RingFault &fault) {
  auto map = [&](size_t bytes) {
    return static_cast<char *>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, off_t(IORING_OFF_CQ_RING)));
  };
  const size_t page = 4096;
  char *begin = map(page);
  const auto entries = *reinterpret_cast<uint32_t *>(begin + ring_offsets.ring_entries);
  munmap(begin, page);
  const size_t bytes = ring_offsets.cqes + entries * sizeof(io_uring_cqe);
  begin = map(bytes);
  auto number = [&](uint32_t offset) { return *reinterpret_cast<uint32_t *>(begin + offset); };
  auto *completions = reinterpret_cast<io_uring_cqe *>(begin + ring_offsets.cqes);
  for (uint32_t i = number(ring_offsets.head); i != number(ring_offsets.tail); ++i) {
    io_uring_cqe &completion = completions[i & number(ring_offsets.ring_mask)];
    const bool transfer = completion.user_data < UINT32_MAX; // the number of a slot
    if (transfer == (fault.of == RingFault::transfer) && fault.times-- > 0)
      completion.res = -fault.error;
  }
  munmap(begin, bytes);
}

void OnRingCall(int, siginfo_t *, void *context) {
  const int saved = errno;
  greg_t *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  RingFault &fault = ring_fault;
  if (fault.of == RingFault::enter && fault.times-- > 0) {
    registers[REG_RAX] = -fault.error;
  } else {
    const long result =
        raw_syscall(SYS_io_uring_enter, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                    registers[REG_R10], registers[REG_R8], registers[REG_R9]);
    const int error = errno;
    if (fault.of != RingFault::enter)
      FailCompletions(int(registers[REG_RDI]), fault);
    registers[REG_RAX] = result < 0 ? -error : result;
  }
  errno = saved;
}

} // namespace

bool InterceptRingOnThisThread(RingFault fault) {
  io_uring_params parameters = {};
  const long ring = raw_syscall(SYS_io_uring_setup, 1, &parameters);
  if (ring < 0)
    return false;
  close(int(ring));
  ring_offsets = parameters.cq_off;
  ring_fault = fault;
  struct sigaction action = {};
  action.sa_sigaction = OnRingCall;
  action.sa_flags = SA_SIGINFO;
  sigset_t unblocked;
  sigemptyset(&unblocked);
  sigaddset(&unblocked, SIGSYS);
  if (sigaction(SIGSYS, &action, nullptr) != 0 ||
      pthread_sigmask(SIG_UNBLOCK, &unblocked, nullptr) != 0)
    return false;
  // The calls of the handler, which are those of the C library's syscall(), are allowed.
  const auto allowed = reinterpret_cast<uint64_t>(raw_syscall);
  constexpr uint32_t kBytes = 64;
  const uint32_t at = offsetof(seccomp_data, instruction_pointer);
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 5),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(allowed >> 32), 0, 4),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
                          BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, uint32_t(allowed), 0, 2),
                          BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, uint32_t(allowed) + kBytes, 1, 0),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)};
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#else
bool InterceptRingOnThisThread(RingFault) { return false; }
#endif

} // namespace boa::calls

using namespace boa::calls;

extern "C" {

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = mode_t(va_arg(more, int)); // used with O_CREAT only
  va_end(more);
  return Unless(Begin("open", ""),
                [&] { return Next<int(const char *, int, ...)>("open")(path, flags, mode); });
}

int openat(int base, const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = mode_t(va_arg(more, int));
  va_end(more);
  return Unless(Begin("open", ""), [&] {
    return Next<int(int, const char *, int, ...)>("openat")(base, path, flags, mode);
  });
}

int flock(int fd, int how) noexcept {
  return Unless(Begin("flock", ""), [&] { return Next<int(int, int)>("flock")(fd, how); });
}

int fsync(int fd) {
  return Unless(Begin("fsync", NameOf(fd)), [&] { return Next<int(int)>("fsync")(fd); });
}

int fdatasync(int fd) {
  return Unless(Begin("fdatasync", NameOf(fd)), [&] { return Next<int(int)>("fdatasync")(fd); });
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
  const Fault now = Begin("pread", NameOf(fd), /*merge=*/true);
  return Unless(now, [&] {
    const ssize_t moved =
        Next<ssize_t(int, void *, size_t, off_t)>("pread")(fd, data, bytes, offset);
    return moved < 0 ? moved : ssize_t(Moved(now, size_t(moved)));
  });
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  const Fault now = Begin("pwrite", NameOf(fd), /*merge=*/true);
  return Unless(now, [&] {
    const ssize_t moved =
        Next<ssize_t(int, const void *, size_t, off_t)>("pwrite")(fd, data, bytes, offset);
    return moved < 0 ? moved : ssize_t(Moved(now, size_t(moved)));
  });
}

int rename(const char *from, const char *to) noexcept {
  return Unless(Begin("rename", LastPart(from) + " " + LastPart(to)),
                [&] { return Next<int(const char *, const char *)>("rename")(from, to); });
}

int renameat(int from_fd, const char *from, int to_fd, const char *to) noexcept {
  return Unless(Begin("rename", LastPart(from) + " " + LastPart(to)), [&] {
    return Next<int(int, const char *, int, const char *)>("renameat")(from_fd, from, to_fd, to);
  });
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) noexcept {
  return Unless(Begin("rename", LastPart(from) + " " + LastPart(to)), [&] {
    return Next<int(int, const char *, int, const char *, unsigned)>("renameat2")(from_fd, from,
                                                                                  to_fd, to, flags);
  });
}

int link(const char *from, const char *to) noexcept {
  return Unless(Begin("link", LastPart(from) + " " + LastPart(to)),
                [&] { return Next<int(const char *, const char *)>("link")(from, to); });
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) noexcept {
  return Unless(Begin("link", LastPart(from) + " " + LastPart(to)), [&] {
    return Next<int(int, const char *, int, const char *, int)>("linkat")(from_fd, from, to_fd, to,
                                                                          flags);
  });
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *info) noexcept {
  const int result = Next<int(int, const char *, int, unsigned, struct statx *)>("statx")(
      fd, path, flags, mask, info);
  std::lock_guard<std::mutex> lock(mutex);
#ifdef STATX_DIOALIGN
  if (result == 0 && direct_alignment > 0 && (mask & STATX_DIOALIGN) != 0) {
    info->stx_mask |= STATX_DIOALIGN;
    info->stx_dio_mem_align = info->stx_dio_offset_align = direct_alignment;
  }
#endif
  return result;
}

} // extern "C"
