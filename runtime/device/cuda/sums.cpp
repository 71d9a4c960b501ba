//===- sums.cpp - Checksums of what lies on the GPU -----------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/sums.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <memory>

namespace boa::cuda {

GpuSums::GpuSums(const Program &program, const Gpu &gpu, const GpuMemory &memory)
    : program(program), gpu(gpu), memory(memory),
      stream(
          gpu, order, [this](Work &work) { return Enqueue(static_cast<Piece &>(work)); },
          [this](const Work &work) {
            return absl::StrCat(this->program.storages[work.storage].name, " entry ", work.entry);
          },
          [this](const Work &work) {
            return Finish(const_cast<Piece &>(static_cast<const Piece &>(work)));
          }) {}

GpuSums::~GpuSums() {
  const Driver &driver = gpu.driver();
  if (registered) {
    driver.StreamSynchronize.address(stream.handle()); // it may be at copying the keys
    driver.MemHostUnregister.address(on_host);
  }
  UnmapArena(on_host, int64_t(kBytes));
  if (on_device)
    driver.MemFree.address(on_device);
}

absl::Status GpuSums::Create() {
  if (absl::Status status = Find(); !status.ok())
    return status;
  if (absl::Status status = stream.Create(this); !status.ok())
    return status;
  if (absl::Status status = MapArena(int64_t(kBytes), on_host); !status.ok())
    return status;
  std::memcpy(on_host + kKeysAt, ChecksumKeys(), sizeof(ChecksumKeys()));
  const Driver &driver = gpu.driver();
  const char *const doing = "allocating what checksums are made in";
  absl::Status status = driver.Call(doing, driver.MemHostRegister, on_host, kBytes, unsigned(0));
  registered = status.ok();
  if (status.ok())
    status = driver.Call(doing, driver.MemAlloc, &on_device, kBytes);
  return status.ok() ? driver.Call(doing, driver.MemcpyHtoDAsync, on_device + kKeysAt,
                                   on_host + kKeysAt, kBytes - kKeysAt, stream.handle())
                     : status;
}

/// By their names, as the optimizer's.
absl::Status GpuSums::Find() {
  for (const Storage &storage : program.storages) {
    if (!storage.LivesOn(Home::ssd))
      continue;
    Function &function = functions[storage.chunk_bytes()];
    const std::string name = absl::StrCat(kSumPrefix, storage.chunk_bytes());
    for (const LoadedFunction &loaded : gpu.functions())
      if (loaded.name == name)
        function = loaded.handle;
    if (!function || storage.chunk_bytes() % kChecksumBlock != 0)
      return absl::InternalError(absl::StrCat("SSDs reach the device's memory, but the program's "
                                              "image has no function for checksums of ",
                                              storage.name, ": compile the program anew"));
  }
  return absl::OkStatus();
}

void GpuSums::Make(const Work &work, int32_t first, int32_t count, Receiver receiver) {
  auto *piece = new Piece; // Done's
  piece->storage = work.storage;
  piece->entry = work.entry;
  piece->count = count;
  piece->sequence = pieces++;
  piece->chunk_bytes = program.storages[work.storage].chunk_bytes();
  const Location &at = work.buffers[0];
  piece->buffers = {{at.space, at.offset + first * piece->chunk_bytes}};
  piece->receiver = std::move(receiver);
  stream.Submit(*piece);
}

absl::Status GpuSums::Enqueue(Piece &piece) {
  piece.parts = int32_t(next++ % GpuStream::kDepth);
  Pointer data = reinterpret_cast<Pointer>(memory.Address(Memory::Side::device, piece.buffers[0]));
  Pointer keys = on_device + kKeysAt, lanes = on_device + piece.parts * sizeof(Slot);
  void *arguments[] = {&data, &keys, &lanes};
  const Driver &driver = gpu.driver();
  const char *const doing = "making a checksum";
  absl::Status status = driver.Call(
      doing, driver.LaunchKernel, functions.at(piece.chunk_bytes), unsigned(piece.count), 1u, 1u,
      unsigned(SumThreads(piece.chunk_bytes)), 1u, 1u, 0u, stream.handle(), arguments, nullptr);
  return status.ok()
             ? driver.Call(doing, driver.MemcpyDtoHAsync, on_host + piece.parts * sizeof(Slot),
                           lanes, piece.count * sizeof(Slot) / kSumChunks, stream.handle())
             : status;
}

absl::Status GpuSums::Finish(Piece &piece) {
  const Slot &slot = reinterpret_cast<const Slot *>(on_host)[piece.parts];
  for (int32_t c = 0; c < piece.count; ++c)
    piece.sums.push_back(FinishChecksum(slot[c], piece.chunk_bytes));
  return absl::OkStatus();
}

void GpuSums::Done(const Work &work, int64_t, int64_t, absl::Status status) {
  const std::unique_ptr<const Piece> piece(static_cast<const Piece *>(&work));
  if (status.ok())
    return piece->receiver(piece->sums);
  // Transfers end in another order than their checksums, so what comes after an error tells it,
  // too.
  if (error.ok())
    error = std::move(status);
  piece->receiver(error);
}

} // namespace boa::cuda
