//===- hazards.h - Who reads and wrote each chunk last ----------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the chunks that commands read and write into dependences between the commands.
// A reader waits for the chunk's last writer. A writer waits for that one and for all
// readers since. Each chunk has its own list: one for every buffer that holds it, and
// one for its copy on SSD.
//
// Ownership: the lists are the class's own. It refers to the table of commands, which
// must outlive it.
// Threads: none of its own, no lock; the engine's mutex guards it.
// Errors: none. Callers check chunk numbers first.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ENGINE_HAZARDS_H
#define BOA_RUNTIME_ENGINE_HAZARDS_H

#include "runtime/abi/program.h"
#include "runtime/engine/commands.h"

#include <cstdint>
#include <vector>

namespace boa {

class Hazards {
public:
  Hazards(const Program &, CommandTable &);

  /// Lists for the chunks of a new buffer: no command uses them yet.
  void Open(uint32_t buffer, int32_t chunks);
  /// Frees the lists of a buffer that no command uses any more.
  void Close(uint32_t buffer);

  /// The command reads (writes) chunks of a buffer, which are counted from the buffer's first.
  void Reads(uint32_t id, uint32_t buffer, int32_t first, int32_t count);
  void Writes(uint32_t id, uint32_t buffer, int32_t first, int32_t count);
  /// The command reads (writes) a chunk on SSD.
  void ReadsDisk(uint32_t id, int32_t storage, int64_t entry, int32_t chunk);
  void WritesDisk(uint32_t id, int32_t storage, int64_t entry, int32_t chunk);

private:
  /// The commands on one chunk that later ones must wait for.
  struct Hazard {
    CommandRef writer;
    std::vector<CommandRef> readers;
  };

  void Read(uint32_t id, Hazard &);
  void Write(uint32_t id, Hazard &);
  void NoteUse(CommandRef writer, uint32_t id);
  Hazard &OnDisk(int32_t storage, int64_t entry, int32_t chunk);

  const Program &program;
  CommandTable &commands;
  std::vector<std::vector<Hazard>> buffers; // by number and chunk
  std::vector<std::vector<Hazard>> disk;    // by storage; entry and chunk. Empty: not on SSD
};

} // namespace boa

#endif // BOA_RUNTIME_ENGINE_HAZARDS_H
