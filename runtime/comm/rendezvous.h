//===- rendezvous.h - How ranks find one another -------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// 1. Each rank r > 0 connects to rank 0 and says who it is, and at which port it listens.
// 2. When all have come, rank 0 tells each the addresses of all, and a number for this meeting.
// 3. Rank r connects to the ranks 1 ... r - 1, and says who it is.
//
// Connections that do not speak so, or that know another number, are closed and change nothing.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_COMM_RENDEZVOUS_H
#define BOA_RUNTIME_COMM_RENDEZVOUS_H

#include "runtime/comm/comm.h"
#include "runtime/comm/sockets.h"

#include <vector>

namespace boa {

/// A connection to each other rank. The own one has no descriptor.
absl::StatusOr<std::vector<Socket>> Meet(const TcpOptions &);

} // namespace boa

#endif // BOA_RUNTIME_COMM_RENDEZVOUS_H
