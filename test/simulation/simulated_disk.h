//===- simulated_disk.h - A disk made for failing ---------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A FileSystem in memory, for tests. One seed decides all that happens on it, so
// that a run is replayed by its number. It promises what file_system.h does and
// takes away all that is not promised there:
//
//   - Power loss: of what was not synced every write, every size and every name
//     survives or not, by itself, whatever its order; a write may survive in part,
//     by sectors. Locks and open files are gone. A killed process loses only these.
//   - Writes that were under way when a process was killed may land long after. Until
//     then they keep the lock of their descriptor.
//   - Transfers complete in any order; a write takes its bytes, and a read brings
//     them, at any time between the start and the completion.
//   - Faults, each with a rate for each device, counted by kind.
//
// Time is virtual and nothing waits. One thread.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_SIMULATION_SIMULATED_DISK_H
#define BOA_TEST_SIMULATION_SIMULATED_DISK_H

#include "runtime/io/file_system.h"

#include <array>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace boa {

enum class Fault {
  // Allowed for: nothing may come of these but time.
  delay,          // a transfer completes long after those that began with it
  short_transfer, // moves fewer bytes than asked for
  eagain,
  eintr,
  // Told by an error.
  io_error,      // of any operation; a failed write may have landed in part
  lasting_error, // the same, and of this region of the file from now on
  no_space,      // although there is some
  failed_sync,   // what was not synced is forgotten, or lost, or on disk
  // Silent.
  flipped_read,      // a bit, on the way
  misdirected_read,  // from another place
  rot,               // a bit, at rest
  lost_write,        // acknowledged, and nowhere
  misdirected_write, // to another place of this file, or to another file
  // The end of the process.
  power_loss,
  kill,
};
constexpr size_t kFaults = size_t(Fault::kill) + 1;
const char *FaultName(Fault);

/// For each operation that a fault can befall, its probability. All 0: none.
struct FaultRates {
  std::array<double, kFaults> rates{};
  double &operator[](Fault fault) { return rates[size_t(fault)]; }
  double operator[](Fault fault) const { return rates[size_t(fault)]; }
};
struct FaultCounts {
  std::array<int64_t, kFaults> counts{};
  int64_t &operator[](Fault fault) { return counts[size_t(fault)]; }
  int64_t operator[](Fault fault) const { return counts[size_t(fault)]; }
};

class SimulatedDisk : public FileSystem {
public:
  explicit SimulatedDisk(uint64_t seed);
  /// Another that holds the same. No file of `other` is open.
  SimulatedDisk(const SimulatedDisk &other, uint64_t seed);
  ~SimulatedDisk() override;

  /// Makes a directory that is a device by itself. All else is one more, without
  /// limits.
  void AddDevice(const std::string &directory, int64_t bytes = std::numeric_limits<int64_t>::max(),
                 std::chrono::nanoseconds latency = std::chrono::microseconds(50));
  /// Of the device that holds `path`.
  void SetSpace(const std::string &path, int64_t bytes);
  /// Of all devices, or of the one that holds `path`. Without lasting errors those
  /// that struck are forgotten.
  void SetRates(const FaultRates &);
  void SetRates(const std::string &path, const FaultRates &);
  /// Power is lost, or the process killed, at the nth operation from now (1: the
  /// next), instead of which it happens. 0: not.
  void DieAt(int64_t operation, Fault how);

  /// From now on everything fails, until Restart.
  void PowerLoss();
  void Kill();
  bool Dead() const;
  /// For the next process. Open files and backends of the last one stay dead.
  void Restart();

  const FaultCounts &Counts() const;
  int64_t Operations() const;
  std::chrono::nanoseconds Now() const; // virtual
  /// How transfers are divided, whatever is asked for; their faults are those asked
  /// for. Null: as asked for.
  void SetIo(const std::optional<IoOptions> &);
  /// Told of every operation and fault; null: nobody.
  void SetLog(std::function<void(const std::string &)>);

  /// Paths of the files whose bytes at rest are not what was written there:
  /// rot, lost and misdirected writes, until they are written over.
  std::set<std::string> Damaged() const;
  /// Paths of all files.
  std::vector<std::string> Files() const;
  /// Damages a byte at rest.
  absl::Status Flip(const std::string &path, int64_t offset, uint8_t mask);

  absl::StatusOr<std::shared_ptr<Directory>> OpenDirectory(const std::string &path) override;
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &path, OpenMode) override;
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &path) override;
  absl::StatusOr<PathKind> Kind(const std::string &path) override;
  absl::StatusOr<std::string> RealPath(const std::string &path) override;
  absl::Status MakeDirectory(const std::string &path) override;
  absl::Status RemoveDirectory(const std::string &path) override;
  absl::Status Rename(const std::string &from, const std::string &to) override;
  absl::Status Unlink(const std::string &path) override;
  absl::Status SyncDirectory(const std::string &path) override;
  absl::StatusOr<DeviceSpace> Space(const std::string &directory) override;
  std::string Host() override { return "simulated"; }
  uint64_t Unique() override; // of the seed
  void Wait(std::chrono::nanoseconds) override;
  /// A backend without a thread: Pending, Advance.
  absl::StatusOr<std::unique_ptr<IoBackend>> CreateIo(std::vector<IoFile> files,
                                                      std::vector<IoLink> links, void *arena,
                                                      int64_t arena_bytes,
                                                      const IoOptions &) override;

  struct Impl;

private:
  std::unique_ptr<Impl> impl;
};

} // namespace boa

#endif // BOA_TEST_SIMULATION_SIMULATED_DISK_H
