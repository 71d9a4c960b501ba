//===- undo.cpp - Removes what a failed opening made ----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/state/undo.h"

#include "runtime/state/commit_files.h"
#include "runtime/state/manifest_files.h"

namespace boa {

/// Manifests of commits first, which name everything else. Then the latest first, and each removal
/// is durable before the next.
Undo::~Undo() {
  for (bool now : {true, false})
    for (auto file = files.rbegin(); file != files.rend(); ++file) {
      const auto &[directory, name] = *file;
      const bool first = !homes.empty() && (name == kManifest || name == kManifestCopy);
      if (first != now)
        continue;
      absl::Status status = directory->Unlink(name);
      if (status.ok())
        status = directory->Sync();
      if (!status.ok() && !absl::IsNotFound(status))
        return;
    }
  for (const std::shared_ptr<Directory> &home : homes)
    if (const absl::StatusOr<std::vector<std::string>> names = home->List(); names.ok())
      for (const std::string &name : *names)
        if (IsSealedFile(*home, name))
          home->Unlink(name).IgnoreError();
  // A directory whose sync failed must not stay: no later sync would make its name durable.
  constexpr int kAttempts = 3;
  for (auto path = directories.rbegin(); path != directories.rend(); ++path)
    for (int i = 0; i < kAttempts && !disk.RemoveDirectory(*path).ok(); ++i)
      ;
}

} // namespace boa
