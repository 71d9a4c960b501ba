//===- chunks.h - Single chunks in and out of an engine ---------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_CHUNKS_H
#define BOA_TEST_RUNTIME_CHUNKS_H

#include "runtime/abi/abi.h"
#include "runtime/engine/engine.h"

#include <cstdlib>
#include <cstring>
#include <memory>

namespace boa {

/// One chunk of so many bytes, with any alignment, waited for.
inline absl::Status ReadChunk(Engine &engine, int32_t storage, int64_t entry, int32_t chunk,
                              void *data, size_t bytes) {
  std::unique_ptr<void, decltype(&std::free)> aligned(std::aligned_alloc(BOA_BLOCK_BYTES, bytes),
                                                      &std::free);
  engine.ReadChunks(storage, entry, chunk, 1, aligned.get());
  absl::Status status = engine.Drain();
  if (status.ok())
    std::memcpy(data, aligned.get(), bytes);
  return status;
}
inline absl::Status WriteChunk(Engine &engine, int32_t storage, int64_t entry, int32_t chunk,
                               const void *data, size_t bytes) {
  std::unique_ptr<void, decltype(&std::free)> aligned(std::aligned_alloc(BOA_BLOCK_BYTES, bytes),
                                                      &std::free);
  std::memcpy(aligned.get(), data, bytes);
  engine.WriteChunks(storage, entry, chunk, 1, aligned.get());
  return engine.Drain();
}

} // namespace boa

#endif // BOA_TEST_RUNTIME_CHUNKS_H
