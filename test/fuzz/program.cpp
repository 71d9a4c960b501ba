//===- program.cpp - Any text as a program's descriptor -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is accepted is what the runtime counts and indexes with, without a check
// of its own: sizes do not overflow, ids are those of storages.
//
//===----------------------------------------------------------------------===//
#include "runtime/abi/program.h"
#include "test/fuzz/support.h"

using namespace boa;

static void CheckStorage(const Storage &storage) {
  int64_t bytes = 0;
  fuzz::Require(storage.entry_count() >= 1, "a storage has entries");
  fuzz::Require(!__builtin_mul_overflow(storage.entry_count(), storage.bytes, &bytes),
                "the bytes of a storage can be counted");
  fuzz::Require(storage.bytes % storage.chunks == 0, "chunks are equal");
}

static void CheckGroup(const Program &program, const Group &group) {
  for (int32_t id : {group.weights, group.low, group.gradient})
    fuzz::Require(id >= -1 && id < int64_t(program.storages.size()), "a storage of that id");
  for (int32_t id : group.states)
    fuzz::Require(id >= 0 && id < int64_t(program.storages.size()), "a storage of a state");
  for (const Parameter &parameter : group.parameters) {
    int64_t elements = 1;
    for (int64_t size : parameter.shape)
      fuzz::Require(!__builtin_mul_overflow(elements, size, &elements), "a shape can be counted");
    fuzz::Require(parameter.offset >= 0 && parameter.offset <= group.elements - elements,
                  "a parameter lies in its group");
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  absl::StatusOr<Program> program =
      ParseProgram(std::string_view(reinterpret_cast<const char *>(data), size));
  if (!program.ok())
    return 0;
  for (const Storage &storage : program->storages)
    CheckStorage(storage);
  for (const Group &group : program->groups)
    CheckGroup(*program, group);
  const int64_t steps = program->train.steps;
  for (int64_t step : {int64_t(1), int64_t(2), steps / 2 + 1, steps})
    LearningRate(program->train.optimizer, step, steps);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return fuzz::MutateText(data, size, most, seed);
}
