//===- support.h - What the fuzz targets share ------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FUZZ_SUPPORT_H
#define BOA_TEST_FUZZ_SUPPORT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace boa::fuzz {

/// Ends the process, as a finding, if something that must hold does not.
void Require(bool holds, const char *what);

/// A folder in memory that is this process's own, removed when it exits: in
/// $BOA_FUZZ_SCRATCH, or else in /dev/shm.
const std::string &Scratch();

/// Replaces the file.
void WriteFile(const std::string &path, std::string_view contents);

/// Changes a text by its words: numbers become others, at the edges of what fits;
/// words become others of the same text; lines (or members of a list, where there
/// is one line) go, double and change places. Now and then libFuzzer's own changes
/// of bytes, with the dictionary. For LLVMFuzzerCustomMutator.
size_t MutateText(uint8_t *data, size_t size, size_t most, unsigned seed);

} // namespace boa::fuzz

#endif // BOA_TEST_FUZZ_SUPPORT_H
