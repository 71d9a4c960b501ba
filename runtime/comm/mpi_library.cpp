//===- mpi_library.cpp - Open MPI, as far as it is used -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/mpi_library.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>
#include <dlfcn.h>

namespace boa::mpi {

constexpr char kAdvice[] = "install Open MPI (libopenmpi3), or use tcp";

/// The name of MPICH's library, if it is here.
static const char *FindMpich() {
  for (const char *name : {"libmpich.so.12", "libmpi.so.12"})
    if (dlopen(name, RTLD_LAZY | RTLD_LOCAL))
      return name;
  return nullptr;
}

absl::StatusOr<Library> Library::Open() {
  const char *const other = std::getenv("BOA_MPI");
  const char *const name = other ? other : "libmpi.so.40";
  // Its plugins look for its symbols. It has threads and handlers of its own, so it stays.
  void *const handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (!handle) {
    const std::string why = dlerror();
    const char *const mpich = FindMpich();
    return absl::NotFoundError(absl::StrCat(
        why, mpich ? absl::StrCat("; ", mpich, " is MPICH, which Boa does not use") : "", ": ",
        kAdvice));
  }
  Library library;
  library.world = dlsym(handle, "ompi_mpi_comm_world");
  library.byte = dlsym(handle, "ompi_mpi_byte");
  library.errors_return = dlsym(handle, "ompi_mpi_errors_return");
  if (!library.world || !library.byte || !library.errors_return)
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is not Open MPI, perhaps MPICH: ", kAdvice));
#define BOA_FIND(name_, arguments)                                                                 \
  library.name_ = reinterpret_cast<int(*) arguments>(dlsym(handle, "MPI_" #name_));                \
  if (!library.name_)                                                                              \
    return absl::FailedPreconditionError(absl::StrCat(name, " has no MPI_" #name_ ": ", kAdvice));
  BOA_MPI_FUNCTIONS(BOA_FIND)
#undef BOA_FIND
  return library;
}

absl::Status Library::Check(int result, const char *doing) const {
  if (result == kSuccess)
    return absl::OkStatus();
  char text[kMaxErrorText] = "";
  int length = 0;
  Error_string(result, text, &length);
  return absl::UnavailableError(absl::StrCat("MPI, ", doing, ": ", text));
}

} // namespace boa::mpi
