//===- Payload.cpp --------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/Payload.h"

#include "runtime/io/hint.h"
#include "runtime/io/input_file.h"
#include "runtime/io/new_file.h"

#include "absl/strings/str_cat.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace boa {

static constexpr char kMagic[] = "boa-prog"; // 8 characters

absl::Status AppendPayload(const std::string &shell, const std::string &library,
                           const std::string &output) {
  auto first = ReadInput(shell), second = ReadInput(library);
  if (!first.ok())
    return first.status();
  if (!second.ok())
    return second.status();
  absl::StatusOr<NewFile> file = NewFile::Create(output);
  if (!file.ok())
    return file.status();
  const uint64_t size = second->size();
  std::string tail(sizeof(size) + sizeof(kMagic) - 1, '\0');
  std::memcpy(tail.data(), &size, sizeof(size));
  std::memcpy(tail.data() + sizeof(size), kMagic, sizeof(kMagic) - 1);
  for (const std::string *part : {&*first, &*second, &tail})
    if (absl::Status status = file->Append(part->data(), int64_t(part->size())); !status.ok())
      return status;
  absl::Status status = file->MakeExecutable();
  return status.ok() ? file->Publish() : status;
}

absl::StatusOr<void *> LoadPayload() {
  std::ifstream self("/proc/self/exe", std::ios::binary | std::ios::ate);
  const int64_t end = self.tellg();
  uint64_t size = 0;
  char magic[8] = {};
  const int64_t tail = sizeof(size) + sizeof(magic);
  self.seekg(end - tail);
  self.read(reinterpret_cast<char *>(&size), sizeof(size));
  self.read(magic, sizeof(magic));
  if (!self || std::memcmp(magic, kMagic, sizeof(magic)) != 0)
    return absl::FailedPreconditionError(
        "there is no program in this executable: it is the shell that `boa compile -o TRAINER` "
        "puts a program into");
  if (size > static_cast<uint64_t>(end - tail))
    return absl::DataLossError("the program in this executable is truncated: compile it again");
  std::string program(size, '\0');
  self.seekg(end - tail - static_cast<int64_t>(size));
  self.read(program.data(), static_cast<std::streamsize>(size));
  if (!self)
    return absl::UnavailableError("cannot read the program in this executable");
  int fd = memfd_create("boa-program", MFD_CLOEXEC);
  for (uint64_t done = 0; fd >= 0 && done < size;) {
    ssize_t n = write(fd, program.data() + done, size - done);
    if (n <= 0)
      return absl::ResourceExhaustedError(absl::StrCat(
          "cannot load the program into memory: ", std::strerror(errno), HintOf(errno)));
    done += n;
  }
  void *handle = dlopen(absl::StrCat("/proc/self/fd/", fd).c_str(), RTLD_NOW);
  if (!handle)
    return absl::InternalError(absl::StrCat("cannot load the program: ", dlerror()));
  close(fd);
  return handle;
}

} // namespace boa
