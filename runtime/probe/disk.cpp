//===- disk.cpp - What an SSD reads and writes ----------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/probe/disk.h"

#include "runtime/io/file_system.h"
#include "runtime/kernels/gemm.h"
#include "runtime/probe/host.h"
#include "runtime/state/checksum.h"
#include "runtime/support/mutex.h"
#include "runtime/support/threads.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <numeric>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <thread>
#include <utility>

namespace boa {
namespace {

constexpr int64_t kRequest = 4 << 20; // as a chunk or two of a large layer
constexpr int kRequests = 16;         // under way: more than the queue has slots for
constexpr size_t kParts = 20;
constexpr int64_t kSmall = 4096;
constexpr int kSmallReads = 200;

/// Requests that are over, from the threads of a backend.
class Completions {
public:
  void Add(int slot, absl::Status status) {
    MutexLock lock(mutex);
    over.emplace_back(slot, std::move(status));
    changed.NotifyOne();
  }
  std::pair<int, absl::Status> Take() {
    MutexLock lock(mutex);
    while (over.empty())
      changed.Wait(mutex);
    auto first = std::move(over.back());
    over.pop_back();
    return first;
  }

private:
  Mutex mutex;
  CondVar changed;
  std::vector<std::pair<int, absl::Status>> over ABSL_GUARDED_BY(mutex);
};

/// The scratch file and its transfers.
class Scratch {
public:
  static absl::StatusOr<Scratch> Open(const std::string &directory, const DiskBudget &);

  enum class Kind { read, write, both };
  /// Transfers for so many seconds, and those that are under way then. `sum`: and the checksum
  /// of each, as a training has it.
  absl::StatusOr<PhaseParts> Run(Kind, double seconds, int depth = IoOptions().depth,
                                 bool sum = false);
  /// Nanoseconds of single small reads, one after another.
  absl::StatusOr<std::vector<double>> Latencies();
  absl::Status Sync() { return file->Sync(); }

  int64_t size() const { return bytes; }
  std::string Degraded() const { return file->Degraded(); }

private:
  absl::StatusOr<std::unique_ptr<IoBackend>> Backend(int depth) const {
    IoOptions options;
    options.depth = depth;
    return SystemFiles().CreateIo({{file->descriptor(), file->path(), 0}}, {{}}, memory.data(),
                                  memory.size(), options);
  }
  /// The next place in the file, for a read or a write. Reads stay in what was written.
  int64_t Next(bool write) {
    const int64_t end = write ? bytes : written;
    int64_t &at = write ? write_at : read_at;
    if (at + kRequest > end)
      at = 0;
    const int64_t here = at;
    at += kRequest;
    if (write)
      written = std::max(written, at);
    return here;
  }

  std::unique_ptr<OpenFile> file;
  ProbeMemory memory;
  int64_t bytes = 0, written = 0, write_at = 0, read_at = 0;
  uint64_t sums = 0; // so that no checksum is left out
};

absl::StatusOr<Scratch> Scratch::Open(const std::string &directory, const DiskBudget &budget) {
  absl::StatusOr<std::shared_ptr<Directory>> folder = SystemFiles().OpenDirectory(directory);
  if (!folder.ok())
    return folder.status();
  Scratch made;
  const std::string name = absl::StrFormat(".boa-probe-%016x", SystemFiles().Unique());
  absl::StatusOr<std::unique_ptr<OpenFile>> file =
      (*folder)->Open(name, {/*write=*/true, /*create=*/true, /*exclusive=*/true, /*direct=*/true});
  if (!file.ok())
    return file.status();
  made.file = *std::move(file);
  if (absl::Status status = (*folder)->Unlink(name); !status.ok())
    return status;
  absl::StatusOr<DeviceSpace> space = SystemFiles().Space(directory);
  if (!space.ok())
    return space.status();
  made.bytes = std::min(budget.most_bytes, space->free_bytes / 4) / kRequest * kRequest;
  if (made.bytes < budget.least_bytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot measure ", directory, ": ", FormatBytes(double(space->free_bytes)),
                     " are free there, and a probe takes at most a quarter: it needs ",
                     FormatBytes(4 * double(budget.least_bytes)), " free, or another --path"));
  if (absl::Status status = made.file->Reserve(made.bytes); !status.ok())
    return status;
  absl::StatusOr<ProbeMemory> memory = ProbeMemory::Allocate(kRequests * kRequest);
  if (!memory.ok())
    return memory.status();
  made.memory = *std::move(memory);
  return made;
}

absl::StatusOr<PhaseParts> Scratch::Run(Kind kind, double seconds, int depth, bool sum) {
  Completions completions; // outlives the backend
  absl::StatusOr<std::unique_ptr<IoBackend>> io = Backend(depth);
  if (!io.ok())
    return io.status();
  PhaseParts parts{std::vector<double>(kParts), seconds / double(kParts)};
  const double begin = ProbeNow(), end = begin + seconds;
  int under_way = 0;
  auto submit = [&](int slot) {
    IoRequest request;
    request.write = kind == Kind::write || (kind == Kind::both && slot % 2 == 1);
    request.offset = Next(request.write);
    request.bytes = kRequest;
    request.data = memory.data() + slot * kRequest;
    request.done = [&completions, slot](absl::Status status) {
      completions.Add(slot, std::move(status));
    };
    ++under_way;
    (*io)->Submit(std::move(request));
  };
  for (int slot = 0; slot < kRequests; ++slot)
    submit(slot);
  absl::Status result;
  while (under_way > 0) {
    auto [slot, status] = completions.Take();
    --under_way;
    result.Update(status);
    parts.moved += double(kRequest);
    if (sum)
      sums ^= Checksum(memory.data() + slot * kRequest, kRequest);
    const double now = ProbeNow();
    if (now >= end || !result.ok())
      continue;
    parts.bytes[std::min(size_t((now - begin) / parts.part_seconds), kParts - 1)] +=
        double(kRequest);
    submit(slot);
  }
  if (!result.ok())
    return result;
  return parts;
}

absl::StatusOr<std::vector<double>> Scratch::Latencies() {
  Completions completions;
  absl::StatusOr<std::unique_ptr<IoBackend>> io = Backend(1);
  if (!io.ok())
    return io.status();
  std::vector<double> times;
  uint64_t random = 1;
  for (int i = 0; i < kSmallReads; ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    IoRequest request;
    request.offset = int64_t((random >> 20) % uint64_t(written / kSmall)) * kSmall;
    request.bytes = kSmall;
    request.data = memory.data();
    request.done = [&](absl::Status status) { completions.Add(0, std::move(status)); };
    const double begin = ProbeNow();
    (*io)->Submit(std::move(request));
    if (absl::Status status = completions.Take().second; !status.ok())
      return status;
    times.push_back((ProbeNow() - begin) * 1e9);
  }
  return times;
}

/// The kernel's name for the device of a directory: "nvme0n1"; "" where it has none.
std::string DeviceOf(const std::string &directory, bool &is_virtual) {
  struct stat info;
  if (stat(directory.c_str(), &info) != 0)
    return "";
  std::error_code error;
  const std::string link =
      absl::StrFormat("/sys/dev/block/%d:%d", major(info.st_dev), minor(info.st_dev));
  const std::filesystem::path device = std::filesystem::canonical(link, error);
  if (error)
    return "";
  const std::string where = device.string();
  for (const char *kind : {"/virtio", "/vbd-", "/vmbus", "/VMBUS", "/block/loop", "/block/zram"})
    is_virtual |= where.find(kind) != std::string::npos;
  return device.filename().string();
}

//===----------------------------------------------------------------------===//
// What it costs processors
//===----------------------------------------------------------------------===//

/// A product whose operands stay in the caches, on all threads.
class Product {
public:
  static absl::StatusOr<Product> Create() {
    absl::StatusOr<ProbeMemory> memory = ProbeMemory::Allocate(3 * kSize * kSize * 4);
    if (!memory.ok())
      return memory.status();
    Product made;
    made.memory = *std::move(memory);
    return made;
  }
  /// Products a second, until told to stop.
  double Rate(const std::function<bool()> &stop) {
    auto *a = reinterpret_cast<float *>(memory.data()), *b = a + kSize * kSize,
         *c = b + kSize * kSize;
    const double begin = ProbeNow();
    int64_t products = 0;
    for (; !stop(); ++products)
      boa_gemm_f32(0, 0, kSize, kSize, kSize, a, kSize, b, kSize, nullptr, 0, c, kSize, nullptr, 0);
    return double(products) / (ProbeNow() - begin);
  }

private:
  static constexpr int64_t kSize = 512;
  ProbeMemory memory;
};

/// Bytes a second that all processors could move and sum if they did nothing else. None if it is
/// lost in the noise.
absl::StatusOr<Figure> MeasureTransfers(Scratch &scratch, double seconds) {
  constexpr int kTurns = 5;
  const double part = seconds / (2 * kTurns + 1);
  absl::StatusOr<Product> product = Product::Create();
  if (!product.ok())
    return product.status();
  auto alone = [&] {
    return product->Rate([end = ProbeNow() + part] { return ProbeNow() >= end; });
  };
  std::vector<double> lost, bytes;
  double before = alone();
  for (int turn = 0; turn < kTurns; ++turn) {
    std::atomic<bool> over{false};
    absl::StatusOr<PhaseParts> parts;
    const double begin = ProbeNow();
    std::thread transfers;
    absl::Status started = StartThread("the thread of transfers", transfers, [&] {
      parts = scratch.Run(Scratch::Kind::both, part, IoOptions().depth, /*sum=*/true);
      over = true;
    });
    if (!started.ok())
      return started;
    const double beside = product->Rate([&] { return over.load(); });
    transfers.join();
    const double took = ProbeNow() - begin, after = alone();
    if (!parts.ok())
      return parts.status();
    lost.push_back(1 - 2 * beside / (before + after));
    bytes.push_back(parts->moved / took);
    before = after;
  }
  const double part_lost = MedianOf(lost, "").value, rate = MedianOf(bytes, "").value;
  constexpr double kNoise = 0.005;
  if (part_lost < kNoise)
    return Figure();
  return Figure{
      rate / part_lost, 0,
      absl::StrFormat("products lose %.1f%% beside %s/s", 100 * part_lost, FormatBytes(rate))};
}

} // namespace

//===----------------------------------------------------------------------===//
// What was moved, and when
//===----------------------------------------------------------------------===//

Figure PhaseParts::Late(std::string how) const {
  std::vector<double> rates;
  for (size_t i = bytes.size() / 2; i < bytes.size(); ++i)
    rates.push_back(bytes[i] / part_seconds);
  Figure figure = MedianOf(rates, std::move(how));
  // A part more or less of a request is no scatter, but a mean has it.
  figure.value = std::accumulate(rates.begin(), rates.end(), 0.0) / double(rates.size());
  return figure;
}

double PhaseParts::Fall() const {
  const auto early = ptrdiff_t(std::max<size_t>(bytes.size() / 5, 1));
  const double first = std::accumulate(bytes.begin(), bytes.begin() + early, 0.0) / double(early);
  const auto half = ptrdiff_t(bytes.size() / 2);
  const double late = std::accumulate(bytes.begin() + half, bytes.end(), 0.0) /
                      double(ptrdiff_t(bytes.size()) - half);
  return first > 0 ? late / first : 1;
}

std::vector<std::string> DoubtsOf(const std::string &path, const PhaseParts &reads,
                                  const PhaseParts &writes) {
  constexpr double kMostFall = 0.8, kFastest = 16e9; // four lanes of PCIe 6 at most
  std::vector<std::string> doubts;
  for (auto [what, parts] : {std::pair("reads", &reads), std::pair("writes", &writes)}) {
    if (parts->Fall() < kMostFall)
      doubts.push_back(absl::StrFormat(
          "%s: %s fell to %.0f%% of their first rate: a cache was filled, and a longer probe may "
          "find less",
          path, what, 100 * parts->Fall()));
    if (parts->Late("").value > kFastest)
      doubts.push_back(absl::StrCat(path, ": ", what, " are faster than an SSD: a cache answers"));
  }
  return doubts;
}

absl::StatusOr<SsdFigures> MeasureDisk(const std::string &directory, const DiskBudget &budget,
                                       std::vector<std::string> &warnings) {
  absl::StatusOr<Scratch> scratch = Scratch::Open(directory, budget);
  if (!scratch.ok())
    return scratch.status();
  using Kind = Scratch::Kind;
  absl::StatusOr<PhaseParts> writes = scratch->Run(Kind::write, 0.4 * budget.seconds);
  if (!writes.ok())
    return writes.status();
  if (absl::Status status = scratch->Sync(); !status.ok())
    return status;
  absl::StatusOr<PhaseParts> reads = scratch->Run(Kind::read, 0.2 * budget.seconds);
  if (!reads.ok())
    return reads.status();
  absl::StatusOr<PhaseParts> both = scratch->Run(Kind::both, 0.25 * budget.seconds);
  if (!both.ok())
    return both.status();
  absl::StatusOr<std::vector<double>> latencies = scratch->Latencies();
  if (!latencies.ok())
    return latencies.status();

  const IoOptions options;
  auto how = [&](const PhaseParts &parts) {
    const double moved = std::accumulate(parts.bytes.begin(), parts.bytes.end(), 0.0);
    return absl::StrCat("blocks of ", FormatBytes(double(options.segment_bytes)), ", ",
                        options.depth, " deep, the last half of ", FormatBytes(moved), " in ",
                        FormatSeconds(parts.part_seconds * double(parts.bytes.size())));
  };
  SsdFigures figures;
  figures.read = reads->Late(how(*reads));
  figures.write = writes->Late(how(*writes));
  figures.both = both->Late(how(*both));
  figures.latency = MedianOf(*latencies, "4 KiB, one at a time");
  absl::StatusOr<Figure> transfers = MeasureTransfers(*scratch, 0.25 * budget.seconds);
  if (!transfers.ok())
    return transfers.status();
  figures.transfers = *std::move(transfers);
  // One at a time moves less; from some depth on it is no more.
  constexpr double kReached = 0.95;
  for (int depth = 1; budget.depths && depth < options.depth; depth *= 2) {
    absl::StatusOr<PhaseParts> shallow = scratch->Run(Kind::read, 0.03 * budget.seconds, depth);
    if (!shallow.ok())
      return shallow.status();
    if (shallow->Late("").value < kReached * figures.read.value)
      continue;
    absl::StrAppend(&figures.read.how, "; ", depth, " deep would do");
    break;
  }

  bool is_virtual = false;
  const std::string device = DeviceOf(directory, is_virtual);
  if (device.empty())
    warnings.push_back(
        absl::StrCat(directory, ": its disk is unknown (a network, memory, an overlay or btrfs)"));
  else if (is_virtual)
    warnings.push_back(absl::StrCat(directory, ": ", device,
                                    " is a virtual disk: its host may cache what is read and "
                                    "written, so the figures are doubtful"));
  if (const std::string degraded = scratch->Degraded(); !degraded.empty())
    warnings.push_back(absl::StrCat(directory, ": ", degraded,
                                    ": the page cache answers, and the figures are doubtful"));
  for (std::string &doubt : DoubtsOf(directory, *reads, *writes))
    warnings.push_back(std::move(doubt));
  return figures;
}

} // namespace boa
