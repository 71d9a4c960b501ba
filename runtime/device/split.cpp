//===- split.cpp - Two memories in one ------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CPU with a device's memory apart from the host's, to find out on any machine what a
// GPU would: each side gets, for what is in the other's memory, addresses that lie in a
// range of the same size to which nobody has access. To touch one is a fault at that
// instruction; a transfer from or to one is an error of the system call (EFAULT). Only
// copies get the true addresses of both.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/memory.h"

#include "absl/strings/str_cat.h"

#include <sys/mman.h>

namespace boa {
namespace {

class SplitMemory : public Memory {
public:
  ~SplitMemory() override {
    for (int space : {BOA_DEVICE, BOA_HOST}) {
      UnmapArena(arenas[space], bytes[space]);
      UnmapArena(barred[space], bytes[space]);
    }
  }

  absl::Status Allocate(const int64_t (&sizes)[2]) override {
    for (int space : {BOA_DEVICE, BOA_HOST}) {
      bytes[space] = sizes[space];
      if (absl::Status status = MapArena(bytes[space], arenas[space]); !status.ok())
        return status;
      if (bytes[space] == 0)
        continue;
      void *range = mmap(nullptr, bytes[space], PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (range == MAP_FAILED)
        return absl::ResourceExhaustedError(
            absl::StrCat("cannot reserve ", bytes[space] >> 20, " MiB of addresses"));
      barred[space] = static_cast<char *>(range);
    }
    return absl::OkStatus();
  }

  char *Address(Side side, Location where) const override {
    if (where.space < 0)
      return nullptr;
    const bool reached = side == Side::copies || (side == Side::host) == (where.space == BOA_HOST);
    return (reached ? arenas : barred)[where.space] + where.offset;
  }

  std::pair<char *, int64_t> HostArena() const override {
    return {arenas[BOA_HOST], bytes[BOA_HOST]};
  }

private:
  int64_t bytes[2] = {};
  char *arenas[2] = {}, *barred[2] = {};
};

} // namespace

std::unique_ptr<Memory> CreateSplitMemory() { return std::make_unique<SplitMemory>(); }

} // namespace boa
