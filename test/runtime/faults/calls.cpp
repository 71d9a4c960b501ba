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
#include <cstddef>
#include <dlfcn.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mutex>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/// Records a call, and says what goes wrong with it.
Fault Begin(const std::string &call, const std::string &on, bool merge = false) {
  std::lock_guard<std::mutex> lock(mutex);
  const std::string line = call + " " + on;
  if (recording && !(merge && !lines.empty() && lines.back() == line))
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

} // namespace boa::calls

using namespace boa::calls;

extern "C" {

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
