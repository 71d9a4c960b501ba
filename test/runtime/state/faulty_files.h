//===- faulty_files.h - The real file system, made to fail ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes all calls on to the operating system, counts them, and lets one of them
// fail, or that one and all that follow, as if the process had died there. What
// goes through descriptors (transfers of chunks) is not counted.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_STATE_FAULTY_FILES_H
#define BOA_TEST_RUNTIME_STATE_FAULTY_FILES_H

#include "runtime/io/file_system.h"

#include "absl/strings/str_cat.h"

#include <functional>
#include <optional>
#include <utility>

namespace boa {

class FaultyFiles : public FileSystem {
public:
  enum Mode { kOnce, kDead };

  /// The nth call from now on fails (from 1); kDead: and all after it.
  void FailAt(int64_t call, Mode how) {
    left = call;
    mode = how;
    hit = false;
  }
  void Heal() {
    left = 0;
    mode = kOnce;
  }

  bool hit = false;                  // whether a call has failed
  std::vector<std::string> calls;    // "Sync PATH"
  std::string fail_at_line;          // every call of this line fails
  bool through_cache = false;        // no syncs: for thousands of openings
  bool full = false;                 // nothing can be reserved any more
  bool bytes_conflict = false;       // a byte of a file that is locked cannot be locked
  std::optional<int64_t> free_bytes; // what Space says
  std::function<void()> on_wait;     // instead of letting time pass
  std::function<void()> on_line;     // before the first call of `on_line_of`
  std::string on_line_of;

  absl::Status Call(const char *name, const std::string &path) {
    const std::string line = absl::StrCat(name, " ", path);
    calls.push_back(line);
    if (on_line && line == on_line_of)
      std::exchange(on_line, nullptr)();
    bool fails = left == 1 || (hit && mode == kDead) || line == fail_at_line;
    left = std::max<int64_t>(left - 1, 0);
    if (!fails)
      return absl::OkStatus();
    hit = true;
    return absl::UnknownError(absl::StrCat("made to fail: ", line));
  }

  absl::StatusOr<std::shared_ptr<Directory>> OpenDirectory(const std::string &path) override {
    if (absl::Status status = Call("OpenDirectory", path); !status.ok())
      return status;
    absl::StatusOr<std::shared_ptr<Directory>> directory = real.OpenDirectory(path);
    if (!directory.ok())
      return directory.status();
    return std::make_shared<Folder>(*this, *std::move(directory));
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &path, OpenMode mode) override {
    if (absl::Status status = Call("Open", path); !status.ok())
      return status;
    mode.direct &= !through_cache;
    return Wrap(real.Open(path, mode));
  }
  absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &path) override {
    if (absl::Status status = Call("Lock", path); !status.ok())
      return status;
    return Wrap(real.Lock(path));
  }
  absl::StatusOr<PathKind> Kind(const std::string &path) override {
    absl::Status status = Call("Kind", path);
    return status.ok() ? real.Kind(path) : status;
  }
  absl::StatusOr<std::string> RealPath(const std::string &path) override {
    absl::Status status = Call("RealPath", path);
    return status.ok() ? real.RealPath(path) : status;
  }
  absl::Status MakeDirectory(const std::string &path) override {
    absl::Status status = Call("MakeDirectory", path);
    return status.ok() ? real.MakeDirectory(path) : status;
  }
  absl::Status RemoveDirectory(const std::string &path) override {
    absl::Status status = Call("RemoveDirectory", path);
    return status.ok() ? real.RemoveDirectory(path) : status;
  }
  absl::Status Rename(const std::string &from, const std::string &to) override {
    absl::Status status = Call("Rename", to);
    return status.ok() ? real.Rename(from, to) : status;
  }
  absl::Status Unlink(const std::string &path) override {
    absl::Status status = Call("Unlink", path);
    return status.ok() ? real.Unlink(path) : status;
  }
  absl::Status SyncDirectory(const std::string &path) override {
    absl::Status status = Call("SyncDirectory", path);
    return status.ok() && !through_cache ? real.SyncDirectory(path) : status;
  }
  absl::StatusOr<DeviceSpace> Space(const std::string &directory) override {
    if (absl::Status status = Call("Space", directory); !status.ok())
      return status;
    absl::StatusOr<DeviceSpace> space = real.Space(directory);
    if (space.ok() && free_bytes)
      space->free_bytes = *free_bytes;
    return space;
  }
  void Wait(std::chrono::nanoseconds time) override {
    if (on_wait)
      on_wait();
    else
      real.Wait(time);
  }
  absl::StatusOr<std::unique_ptr<IoBackend>> CreateIo(std::vector<IoFile> files,
                                                      std::vector<IoLink> links, void *arena,
                                                      int64_t arena_bytes,
                                                      const IoOptions &options) override {
    return real.CreateIo(std::move(files), std::move(links), arena, arena_bytes, options);
  }

private:
  class File : public OpenFile {
  public:
    File(FaultyFiles &owner, std::unique_ptr<OpenFile> real)
        : owner(owner), real(std::move(real)) {}
    int descriptor() const override { return real->descriptor(); }
    const std::string &path() const override { return real->path(); }
    std::string Degraded() const override { return real->Degraded(); }
    absl::StatusOr<int64_t> Size() const override {
      absl::Status status = owner.Call("Size", path());
      return status.ok() ? real->Size() : status;
    }
    absl::StatusOr<int> Permissions() const override { return real->Permissions(); }
    absl::Status Read(int64_t offset, void *data, int64_t bytes) const override {
      absl::Status status = owner.Call("Read", path());
      return status.ok() ? real->Read(offset, data, bytes) : status;
    }
    /// One that fails has written half.
    absl::Status Write(int64_t offset, const void *data, int64_t bytes) override {
      const bool dead = owner.hit && owner.mode == kDead;
      absl::Status status = owner.Call("Write", path());
      if (!status.ok() && dead)
        return status;
      absl::Status written = real->Write(offset, data, status.ok() ? bytes : bytes / 2);
      return status.ok() ? written : status;
    }
    absl::Status Reserve(int64_t bytes) override {
      if (absl::Status status = owner.Call("Reserve", path()); !status.ok())
        return status;
      return owner.full ? absl::ResourceExhaustedError(absl::StrCat("no space for ", path()))
                        : real->Reserve(bytes);
    }
    absl::Status Sync() override {
      absl::Status status = owner.Call("Sync", path());
      return status.ok() && !owner.through_cache ? real->Sync() : status;
    }
    absl::Status Lock() override {
      absl::Status status = owner.Call("LockFile", path());
      return status.ok() ? real->Lock() : status;
    }
    absl::Status LockBytes(int64_t offset, int64_t bytes, bool shared) override {
      absl::Status status = owner.Call("LockBytes", path());
      if (status.ok() && owner.bytes_conflict)
        return absl::UnavailableError("of a whole file, by this process");
      return status.ok() ? real->LockBytes(offset, bytes, shared) : status;
    }

  private:
    FaultyFiles &owner;
    std::unique_ptr<OpenFile> real;
  };

  class Folder : public Directory {
  public:
    Folder(FaultyFiles &owner, std::shared_ptr<Directory> real)
        : owner(owner), real(std::move(real)) {}
    const std::string &path() const override { return real->path(); }
    absl::StatusOr<bool> IsCurrent() const override {
      absl::Status status = owner.Call("IsCurrent", path());
      return status.ok() ? real->IsCurrent() : status;
    }
    absl::StatusOr<bool> Names(const std::string &name, const OpenFile &file) const override {
      absl::Status status = owner.Call("Names", At(name));
      return status.ok() ? real->Names(name, file) : status;
    }
    absl::StatusOr<std::unique_ptr<OpenFile>> Open(const std::string &name,
                                                   OpenMode mode) override {
      if (absl::Status status = owner.Call("Open", At(name)); !status.ok())
        return status;
      mode.direct &= !owner.through_cache;
      return owner.Wrap(real->Open(name, mode));
    }
    absl::StatusOr<std::unique_ptr<OpenFile>> Lock(const std::string &name) override {
      if (absl::Status status = owner.Call("Lock", At(name)); !status.ok())
        return status;
      return owner.Wrap(real->Lock(name));
    }
    absl::StatusOr<PathKind> Kind(const std::string &name) override {
      absl::Status status = owner.Call("Kind", At(name));
      return status.ok() ? real->Kind(name) : status;
    }
    absl::Status Rename(const std::string &from, const std::string &to) override {
      absl::Status status = owner.Call("Rename", At(to));
      return status.ok() ? real->Rename(from, to) : status;
    }
    absl::Status Unlink(const std::string &name) override {
      absl::Status status = owner.Call("Unlink", At(name));
      return status.ok() ? real->Unlink(name) : status;
    }
    absl::Status Sync() override {
      absl::Status status = owner.Call("SyncDirectory", path());
      return status.ok() && !owner.through_cache ? real->Sync() : status;
    }
    absl::StatusOr<std::vector<std::string>> List() override {
      absl::Status status = owner.Call("List", path());
      return status.ok() ? real->List() : status;
    }

  private:
    std::string At(const std::string &name) const { return absl::StrCat(path(), "/", name); }

    FaultyFiles &owner;
    std::shared_ptr<Directory> real;
  };

  absl::StatusOr<std::unique_ptr<OpenFile>> Wrap(absl::StatusOr<std::unique_ptr<OpenFile>> file) {
    if (!file.ok())
      return file.status();
    return std::unique_ptr<OpenFile>(new File(*this, *std::move(file)));
  }

  FileSystem &real = SystemFiles();
  int64_t left = 0;
  Mode mode = kOnce;
};

} // namespace boa

#endif // BOA_TEST_RUNTIME_STATE_FAULTY_FILES_H
