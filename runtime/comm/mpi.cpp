//===- mpi.cpp - Ranks connected by Open MPI ------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread calls MPI, since Open MPI moves nothing on its own. It looks at its requests, and
// sleeps between two looks, up to a millisecond where nothing moves.
//
// The streams go through segments that are the engine's own, a few for each peer and direction.
// MPI keeps their order. So an error gives the caller's memory back at once: MPI cannot take back
// a send that has begun. A segment's size also fits an int.
//
// A rank that ends tells the others how many segments it has sent them, or that it failed.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/mpi_library.h"
#include "runtime/comm/worker_comm.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <poll.h>
#include <time.h>

namespace boa {
namespace {

// A rank has 2 * kSegments * kSegmentBytes for each peer: 1 MiB.
constexpr int kSegments = 2;
constexpr int64_t kSegmentBytes = 256 << 10;
constexpr int kData = 0, kEnd = 1; // tags
constexpr int64_t kFailed = -1;
// Nanoseconds between two looks: at first, while exchanges wait, and while none does. MPI may also
// have to move what it has taken before.
constexpr int64_t kShortest = 20'000, kLongest = 1'000'000, kLongestIdle = 10'000'000;
// For the others to learn of an error.
constexpr auto kFarewell = std::chrono::milliseconds(200);

struct Segment {
  std::unique_ptr<char[]> data{new char[size_t(kSegmentBytes)]};
  mpi::Handle request = nullptr; // null: none
  int64_t begin = 0, end = 0;    // of a receive: bytes that came and are not in place yet
};

/// An end that is told with kEnd: segments that were sent before, or kFailed.
struct End {
  int64_t segments = 0;
  mpi::Handle request = nullptr;
};

struct Peer {
  std::array<Segment, kSegments> out, in; // used in turn
  size_t out_turn = 0, in_turn = 0;
  int64_t sent = 0, received = 0; // segments
  End own_end, end;
};

class MpiComm : public WorkerComm {
public:
  MpiComm(const mpi::Library &library, int32_t rank, int32_t ranks)
      : WorkerComm(rank, ranks), library(library), peers(size_t(ranks)) {}
  ~MpiComm() override;

  using WorkerComm::Start;
  std::string Describe() const override;

private:
  void Run() override;
  bool Step();
  bool SendTo(int32_t rank);
  bool ReceiveFrom(int32_t rank);
  void Expect(int32_t rank, Segment &);
  void SeeEnd(int32_t rank);
  void SayEnd();
  bool IsTold();
  void TakeBackReceives();
  void Sleep(int64_t ns);
  bool IsOver(mpi::Handle &request, mpi::Status &, const char *doing);
  /// Fails with MPI's error, if it is one.
  void Check(int result, const char *doing);

  const mpi::Library library;
  std::vector<std::unique_ptr<Peer>> peers; // by rank; none for the own
  bool clean = false;                       // of the end
};

//===----------------------------------------------------------------------===//
// Moving
//===----------------------------------------------------------------------===//

void MpiComm::Check(int result, const char *doing) {
  if (absl::Status status = library.Check(result, doing); !status.ok())
    streams.Fail(status);
}

bool MpiComm::IsOver(mpi::Handle &request, mpi::Status &status, const char *doing) {
  int over = 0;
  Check(library.Test(&request, &over, &status), doing);
  if (over)
    request = nullptr;
  return over;
}

/// Whether something moved.
bool MpiComm::SendTo(int32_t to) {
  Peer &peer = *peers[to];
  mpi::Status status;
  for (bool moved = false;; moved = true) {
    Segment &segment = peer.out[peer.out_turn];
    if (segment.request && !IsOver(segment.request, status, "sending"))
      return moved;
    int64_t filled = 0;
    for (Span span = streams.Outgoing(to); span.bytes > 0 && filled < kSegmentBytes;
         span = streams.Outgoing(to)) {
      const int64_t bytes = std::min(span.bytes, kSegmentBytes - filled);
      std::memcpy(segment.data.get() + filled, span.data, size_t(bytes));
      streams.Sent(to, bytes);
      filled += bytes;
    }
    if (filled == 0)
      return moved;
    Check(library.Isend(segment.data.get(), int(filled), library.byte, to, kData, library.world,
                        &segment.request),
          "sending");
    ++peer.sent;
    peer.out_turn = (peer.out_turn + 1) % kSegments;
  }
}

void MpiComm::Expect(int32_t from, Segment &segment) {
  Check(library.Irecv(segment.data.get(), int(kSegmentBytes), library.byte, from, kData,
                      library.world, &segment.request),
        "receiving");
}

/// Whether something moved.
bool MpiComm::ReceiveFrom(int32_t from) {
  Peer &peer = *peers[from];
  for (bool moved = false;; moved = true) {
    Segment &segment = peer.in[peer.in_turn];
    if (segment.request) {
      mpi::Status status;
      int bytes = 0;
      if (!IsOver(segment.request, status, "receiving"))
        return moved;
      Check(library.Get_count(&status, library.byte, &bytes), "receiving");
      segment.begin = 0;
      segment.end = bytes;
    }
    for (Span span = streams.Incoming(from); span.bytes > 0 && segment.begin < segment.end;
         span = streams.Incoming(from)) {
      const int64_t bytes = std::min(span.bytes, segment.end - segment.begin);
      std::memcpy(span.data, segment.data.get() + segment.begin, size_t(bytes));
      streams.Received(from, bytes);
      segment.begin += bytes;
      moved = true;
    }
    if (segment.begin < segment.end || !streams.failed().ok())
      return moved;
    ++peer.received;
    peer.in_turn = (peer.in_turn + 1) % kSegments;
    Expect(from, segment);
  }
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

void MpiComm::SeeEnd(int32_t rank) {
  Peer &peer = *peers[rank];
  mpi::Status status;
  if (peer.end.request && !IsOver(peer.end.request, status, "receiving"))
    return;
  const bool failed = peer.end.segments == kFailed;
  if (failed || peer.end.segments == peer.received)
    streams.Close(rank, absl::UnavailableError(
                            absl::StrCat("rank ", rank, failed ? " has failed" : " has ended")));
}

void MpiComm::SayEnd() {
  for (int32_t rank = 0; rank < ranks(); ++rank)
    if (Peer *peer = peers[rank].get()) {
      peer->own_end.segments = streams.failed().ok() ? peer->sent : kFailed;
      Check(library.Isend(&peer->own_end.segments, sizeof(int64_t), library.byte, rank, kEnd,
                          library.world, &peer->own_end.request),
            "ending");
    }
}

/// Whether MPI has taken all segments and ends.
bool MpiComm::IsTold() {
  bool told = true;
  mpi::Status status;
  auto take = [&](mpi::Handle &request) {
    told = (!request || IsOver(request, status, "ending")) && told;
  };
  for (const std::unique_ptr<Peer> &peer : peers) {
    if (!peer)
      continue;
    for (Segment &segment : peer->out)
      take(segment.request);
    take(peer->own_end.request);
  }
  return told;
}

void MpiComm::TakeBackReceives() {
  auto take_back = [&](mpi::Handle &request) {
    if (request) {
      library.Cancel(&request);
      library.Request_free(&request);
    }
  };
  for (const std::unique_ptr<Peer> &peer : peers) {
    if (!peer)
      continue;
    for (Segment &segment : peer->in)
      take_back(segment.request);
    take_back(peer->end.request);
  }
}

/// Whether something moved.
bool MpiComm::Step() {
  bool moved = false;
  for (int32_t rank = 0; rank < ranks(); ++rank)
    if (peers[rank]) {
      moved |= ReceiveFrom(rank);
      moved |= SendTo(rank);
      SeeEnd(rank);
    }
  return moved;
}

/// Until something is submitted, at the latest.
void MpiComm::Sleep(int64_t ns) {
  pollfd polled = {wake.fd(), POLLIN, 0};
  const timespec time = {0, long(ns)};
  ppoll(&polled, 1, &time, nullptr);
}

void MpiComm::Run() {
  for (int32_t rank = 0; rank < ranks(); ++rank) {
    if (rank == this->rank())
      continue;
    peers[rank] = std::make_unique<Peer>();
    for (Segment &segment : peers[rank]->in)
      Expect(rank, segment);
    End &end = peers[rank]->end;
    Check(library.Irecv(&end.segments, sizeof(int64_t), library.byte, rank, kEnd, library.world,
                        &end.request),
          "beginning");
  }
  int64_t pause = kShortest;
  bool said = false;
  while (Take()) {
    if (!streams.failed().ok() && !std::exchange(said, true))
      SayEnd();
    if (Step()) {
      pause = kShortest;
    } else if (!streams.HasDone()) {
      const int64_t longest = streams.Idle() ? kLongestIdle : kLongest;
      Sleep(std::min(pause, longest));
      pause = std::min(2 * pause, longest);
    }
  }
  if (!said)
    SayEnd();
  // A peer that failed takes nothing any more, and its mpirun ends this rank soon.
  bool told = false, lost = !streams.failed().ok();
  const auto begin = std::chrono::steady_clock::now();
  while (!(told = IsTold()) && !(lost && std::chrono::steady_clock::now() - begin > kFarewell)) {
    for (int32_t rank = 0; rank < ranks(); ++rank)
      if (peers[rank]) {
        SeeEnd(rank);
        lost |= peers[rank]->end.segments == kFailed;
      }
    Sleep(kShortest);
  }
  clean = told && !lost;
}

MpiComm::~MpiComm() {
  Stop();
  if (clean) {
    TakeBackReceives();
    library.Finalize();
  } else {
    // MPI may still use the segments.
    new std::vector<std::unique_ptr<Peer>>(std::move(peers));
  }
}

std::string MpiComm::Describe() const {
  std::string text(mpi::kMaxVersionText, '\0');
  int length = 0;
  library.Get_library_version(text.data(), &length);
  text.resize(size_t(length));
  // "Open MPI v4.1.4, package: ..."
  return absl::StrCat(text.substr(0, text.find(',')), ", rank ", rank(), " of ", ranks());
}

} // namespace

absl::StatusOr<std::unique_ptr<Comm>> CreateMpiComm() {
  absl::StatusOr<mpi::Library> library = mpi::Library::Open();
  if (!library.ok())
    return library.status();
  int begun = 0, level = 0, rank = 0, ranks = 0;
  library->Initialized(&begun);
  if (begun)
    return absl::FailedPreconditionError("MPI has begun in this process already");
  absl::Status status =
      library->Check(library->Init_thread(nullptr, nullptr, mpi::kSerialized, &level), "beginning");
  if (status.ok() && level < mpi::kSerialized)
    status = absl::FailedPreconditionError("this Open MPI has no threads: use another, or tcp");
  for (int result :
       {library->Comm_set_errhandler(library->world, library->errors_return),
        library->Comm_rank(library->world, &rank), library->Comm_size(library->world, &ranks)})
    status.Update(library->Check(result, "beginning"));
  if (!status.ok())
    return status;
  auto comm = std::make_unique<MpiComm>(*library, rank, ranks);
  status = comm->Start();
  if (!status.ok())
    return status;
  return comm;
}

} // namespace boa
