//===- simulated_impl.h - The parts of the simulated disk -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What simulated_disk.cpp, simulated_inode.cpp and simulated_io.cpp share; nobody
// else includes it.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_SIMULATION_SIMULATED_IMPL_H
#define BOA_TEST_SIMULATION_SIMULATED_IMPL_H

#include "runtime/io/queue.h"
#include "test/simulation/simulated_disk.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <memory>

namespace boa::simulated {

constexpr int64_t kPageBytes = 4096, kSectorBytes = 512;
constexpr int64_t kRegionBytes = 65536; // that fails for good

/// The seed's numbers (splitmix64): the same everywhere.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t Next();
  /// One of 0 ... count - 1.
  int64_t Below(int64_t count) { return int64_t(Next() % uint64_t(count)); }
  bool Chance(double probability) {
    return probability > 0 && double(Next() >> 11) * 0x1p-53 < probability;
  }

private:
  uint64_t state;
};

/// Bytes of a file. Pages are shared among copies until they are written; those
/// that are not there read as zeros.
class Contents {
public:
  void Read(int64_t offset, int64_t bytes, char *data) const;
  void Write(int64_t offset, absl::string_view data);
  /// Takes a page as another file has it.
  void CopyPage(const Contents &from, int64_t page);
  void Flip(int64_t offset, uint8_t mask);
  /// Drops the bytes from here on.
  void Trim(int64_t size);
  bool Has(int64_t page) const { return pages.count(page) > 0; }
  int64_t PagesFrom(int64_t page) const; // how many
  int64_t NthPage(int64_t n) const { return std::next(pages.begin(), n)->first; }

private:
  using Page = std::array<char, kPageBytes>;
  Page &Own(int64_t page);
  std::map<int64_t, std::shared_ptr<Page>> pages;
};

/// A write, or else a new size, that no sync has made durable.
struct Unsynced {
  int64_t offset = 0;
  std::string data;
  int64_t size = -1;
};

struct ByteLock {
  int fd = -1;
  int64_t offset = 0, bytes = 0;
  bool shared = false;
};

struct Inode;
using InodeRef = std::shared_ptr<Inode>;

struct Inode {
  size_t device = 0;
  bool directory = false;

  // Files.
  Contents now, durable;
  int64_t size = 0, durable_size = 0;
  int64_t reserved = 0; // bytes from the beginning that have their space
  std::vector<Unsynced> unsynced;
  std::set<int64_t> damaged, durable_damaged; // pages
  std::set<int64_t> failing;                  // regions
  int lock_holder = -1;                       // descriptor
  std::vector<ByteLock> byte_locks;

  // Directories.
  std::map<std::string, InodeRef> entries, durable_entries;

  int64_t AllocatedPages() const;
  void Write(int64_t offset, absl::string_view data);
  void Grow(int64_t bytes);
  void Sync();
  /// A sync that fails: each change is durable or not, and no later sync of them
  /// makes any difference; what reads see may be either.
  void FailSync(Random &);
  /// Leaves what a power loss does.
  void LosePower(Random &);
  void MarkDamaged(int64_t offset, int64_t bytes);

private:
  void Settle(const Unsynced &, Random &);
};

/// A change of names that happens whole or not at all.
struct NameChange {
  struct Entry {
    InodeRef directory;
    std::string name;
    InodeRef now; // null: removed
  };
  std::vector<Entry> entries;
  void Apply() const; // to what is durable
  bool Concerns(const std::set<Inode *> &directories) const;
};

struct Device {
  int64_t bytes = 0;
  std::chrono::nanoseconds latency{0};
  FaultRates rates;
};

/// An open file.
struct Handle {
  InodeRef inode;
  std::string path;
  OpenMode mode;
};

/// A write that outlives its process. Until it lands it keeps the file open, and so the
/// lock of its descriptor.
struct LateWrite {
  InodeRef inode;
  int fd;
  int64_t offset;
  std::string data;
  IoClock::time_point due;
};

/// A path from the root, or a name in a directory. `shown` is for errors.
struct Where {
  InodeRef from; // null: the root
  std::string path, shown;
};

/// Where a name stands, or the errno of why it stands nowhere.
struct Place {
  InodeRef directory, inode; // null: there is none
  std::string name;
  int error = 0;
};

inline absl::Status Error(int error, absl::string_view what, const std::string &path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot ", what, " ", path));
}

/// What happens to the transfers of a backend when the process dies.
class InFlight {
public:
  virtual ~InFlight() = default;
  virtual void Die() = 0;
};

/// Some of the sectors of a write, each by chance: where they begin and how many
/// bytes they have.
std::vector<std::pair<int64_t, int64_t>> TornSectors(int64_t offset, int64_t bytes, Random &);

} // namespace boa::simulated

namespace boa {

struct SimulatedDisk::Impl {
  explicit Impl(uint64_t seed);

  simulated::Random random;
  std::vector<simulated::Device> devices;
  simulated::InodeRef root;
  std::vector<simulated::NameChange> unsynced_names;
  std::map<int, simulated::Handle> handles; // by descriptor
  int next_descriptor = 1 << 20;            // so that system calls refuse it
  std::set<simulated::InFlight *> backends;
  std::vector<simulated::LateWrite> late_writes;
  IoClock::time_point now{};
  int64_t operations = 0, die_at = 0;
  Fault die_how = Fault::power_loss;
  bool dead = false;
  int64_t deaths = 0;
  FaultCounts counts;
  std::optional<IoOptions> io_options;
  std::function<void(const std::string &)> log;

  template <typename... Parts> void Log(const Parts &...parts) {
    if (log)
      log(absl::StrCat(operations, ": ", parts...));
  }

  // simulated_disk.cpp
  simulated::Place Locate(const std::string &path, const simulated::InodeRef &from = nullptr) const;
  simulated::Place Locate(const simulated::Where &where) const {
    return Locate(where.path, where.from);
  }
  simulated::InodeRef Find(const std::string &path) const;
  void ChangeNames(std::vector<simulated::NameChange::Entry>);
  absl::Status SyncNames(const simulated::InodeRef &directory, const std::string &path);
  void LosePower();
  void Die(Fault how);
  void ForEachFile(const std::function<void(const std::string &, simulated::Inode &)> &) const;
  absl::StatusOr<PathKind> Kind(const simulated::Where &);
  absl::Status Rename(const simulated::Where &from, const simulated::Where &to);
  absl::Status Unlink(const simulated::Where &);

  // simulated_file.cpp
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const simulated::Where &, OpenMode);
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const simulated::Where &);

  // simulated_io.cpp
  /// Begins an operation: time passes, the process may die, bits rot. The errno
  /// that it fails with, or 0. Afterwards handles may be gone.
  int Begin(const char *what, const std::string &path, size_t device);
  bool Strikes(Fault, size_t device, const std::string &path);
  void Rot(size_t device);
  std::pair<simulated::InodeRef, int64_t> Elsewhere(const simulated::Handle &, int64_t offset,
                                                    int64_t bytes);
  int64_t FreePages(size_t device) const;
  bool HasSpace(const simulated::Inode &, int64_t offset, int64_t bytes) const;
  simulated::Handle *FindHandle(int fd);
  /// Bytes moved or a negated errno. `whole`: all that there are, as by a loop.
  int64_t Move(int fd, const std::string &path, bool write, int64_t offset, int64_t bytes,
               char *data, bool whole);
  int MoveError(const simulated::Handle &, bool write, int64_t offset, int64_t bytes,
                const char *data, bool whole);
  void Write(simulated::Handle &, int64_t offset, absl::string_view);
  void WriteSome(simulated::Inode &, int64_t offset, absl::string_view);
  /// Lands the writes that are due, or all, and ends their locks.
  void LandLateWrites(bool all);
  void Read(simulated::Handle &, int64_t offset, int64_t bytes, char *data);
};

} // namespace boa

#endif // BOA_TEST_SIMULATION_SIMULATED_IMPL_H
