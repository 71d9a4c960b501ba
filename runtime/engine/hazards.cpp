//===- hazards.cpp - Who reads and wrote each chunk last ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/hazards.h"

namespace boa {

Hazards::Hazards(const Program &program, CommandTable &commands)
    : program(program), commands(commands), disk(program.storages.size()) {
  for (size_t s = 0; s < disk.size(); ++s)
    if (const Storage &storage = program.storages[s]; storage.LivesOn(Home::ssd))
      disk[s].resize(storage.entry_count() * storage.chunks);
}

void Hazards::Open(uint32_t buffer, int32_t chunks) {
  if (buffer >= buffers.size())
    buffers.resize(buffer + 1);
  buffers[buffer].resize(chunks);
}

void Hazards::Close(uint32_t buffer) { std::vector<Hazard>().swap(buffers[buffer]); }

/// A read brings chunks for the first command that uses them: the first one issued.
void Hazards::NoteUse(CommandRef writer, uint32_t id) {
  if (commands.IsOver(writer))
    return;
  Command &read = commands[writer.id];
  if (read.work.kind == Work::Kind::read && read.first_use == 0)
    read.first_use = commands[id].sequence;
}

void Hazards::Read(uint32_t id, Hazard &hazard) {
  commands.DependOn(id, hazard.writer);
  ++commands[id].touched;
  const CommandRef self = commands.RefTo(id);
  // The readers of a chunk that nobody writes must not pile up. The last kernel is over last.
  for (CommandRef &reader : hazard.readers)
    if (commands.IsOver(reader) ||
        SameQueue(commands[reader.id].work.kind, commands[id].work.kind)) {
      reader = self;
      return;
    }
  hazard.readers.push_back(self);
}

void Hazards::Write(uint32_t id, Hazard &hazard) {
  commands.DependOn(id, hazard.writer);
  ++commands[id].touched;
  for (CommandRef reader : hazard.readers)
    commands.DependOn(id, reader);
  hazard.readers.clear();
  hazard.writer = commands.RefTo(id);
}

void Hazards::Reads(uint32_t id, uint32_t buffer, int32_t first, int32_t count) {
  std::vector<Hazard> &chunks = buffers[buffer];
  for (int32_t c = first; c < first + count; ++c) {
    NoteUse(chunks[c].writer, id);
    Read(id, chunks[c]);
  }
}

void Hazards::Writes(uint32_t id, uint32_t buffer, int32_t first, int32_t count) {
  std::vector<Hazard> &chunks = buffers[buffer];
  for (int32_t c = first; c < first + count; ++c) {
    NoteUse(chunks[c].writer, id);
    Write(id, chunks[c]);
  }
}

Hazards::Hazard &Hazards::OnDisk(int32_t storage, int64_t entry, int32_t chunk) {
  return disk[storage][entry * program.storages[storage].chunks + chunk];
}

void Hazards::ReadsDisk(uint32_t id, int32_t storage, int64_t entry, int32_t chunk) {
  Read(id, OnDisk(storage, entry, chunk));
}

void Hazards::WritesDisk(uint32_t id, int32_t storage, int64_t entry, int32_t chunk) {
  Write(id, OnDisk(storage, entry, chunk));
}

} // namespace boa
