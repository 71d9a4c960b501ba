//===- mpi_library.h - Open MPI, as far as it is used --------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table of the library's functions, looked up when an engine is made. Nothing is linked, and a
// machine without Open MPI gets a status. Open MPI's handles are addresses of objects that it
// exports, such as ompi_mpi_comm_world. MPICH's are numbers, so it is refused.
//
// For tests, BOA_MPI names another library than libmpi.so.40.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_MPI_LIBRARY_H
#define BOA_RUNTIME_COMM_MPI_LIBRARY_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <cstddef>

namespace boa::mpi {

using Handle = void *; // of a communicator, a type, an error handler, a request

/// MPI_Status of Open MPI 1.7 to 5.
struct Status {
  int source, tag, error, cancelled;
  size_t bytes;
};

constexpr int kSuccess = 0, kSerialized = 2;
constexpr int kMaxErrorText = 256, kMaxVersionText = 256;

/// F(name, arguments) of MPI_name.
#define BOA_MPI_FUNCTIONS(F)                                                                       \
  F(Cancel, (Handle * request))                                                                    \
  F(Comm_rank, (Handle comm, int *rank))                                                           \
  F(Comm_set_errhandler, (Handle comm, Handle handler))                                            \
  F(Comm_size, (Handle comm, int *ranks))                                                          \
  F(Error_string, (int code, char *text, int *length))                                             \
  F(Finalize, ())                                                                                  \
  F(Get_count, (const Status *, Handle type, int *count))                                          \
  F(Get_library_version, (char *text, int *length))                                                \
  F(Init_thread, (int *argc, char ***argv, int wanted, int *provided))                             \
  F(Initialized, (int *yes))                                                                       \
  F(Irecv, (void *, int count, Handle type, int source, int tag, Handle comm, Handle *request))    \
  F(Isend, (const void *, int count, Handle type, int to, int tag, Handle comm, Handle *request))  \
  F(Request_free, (Handle * request))                                                              \
  F(Test, (Handle * request, int *over, Status *))

class Library {
public:
  static absl::StatusOr<Library> Open();

#define BOA_FUNCTION(name, arguments) int(*name) arguments = nullptr;
  BOA_MPI_FUNCTIONS(BOA_FUNCTION)
#undef BOA_FUNCTION
  Handle world = nullptr, byte = nullptr, errors_return = nullptr;

  /// The error of a function's result. Its message names the activity `doing`: "sending".
  absl::Status Check(int result, const char *doing) const;
};

} // namespace boa::mpi

#endif // BOA_RUNTIME_COMM_MPI_LIBRARY_H
