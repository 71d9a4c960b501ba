//===- crc32c.cpp - Checksums of chunks -----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CRC-32C with the processor's instruction, three streams at a time to hide its
// latency; a table where there is none.
//
//===----------------------------------------------------------------------===//
#include "runtime/state.h"

#include <array>
#include <cstring>

namespace boa {

namespace {

using CrcTable = std::array<uint32_t, 256>;
constexpr uint32_t kCastagnoli = 0x82f63b78; // reflected
// Bytes of one of three streams that the processor works on at once.
constexpr int64_t kCrcStream = 1024;

CrcTable MakeByteTable() {
  CrcTable table;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (crc & 1 ? kCastagnoli : 0);
    table[i] = crc;
  }
  return table;
}

const CrcTable &ByteTable() {
  static const CrcTable table = MakeByteTable();
  return table;
}

uint32_t CrcBytes(uint32_t crc, const unsigned char *data, int64_t bytes) {
  const CrcTable &table = ByteTable();
  for (int64_t i = 0; i < bytes; ++i)
    crc = (crc >> 8) ^ table[(crc ^ data[i]) & 0xff];
  return crc;
}

#if defined(__x86_64__)
/// What kCrcStream zero bytes make of a CRC, by its four bytes: the map is
/// linear.
std::array<CrcTable, 4> MakeShiftTables() {
  const CrcTable &table = ByteTable();
  std::array<CrcTable, 4> shift;
  for (int byte = 0; byte < 4; ++byte) {
    shift[byte][0] = 0;
    for (int bit = 0; bit < 8; ++bit) {
      uint32_t crc = uint32_t(1) << (8 * byte + bit);
      for (int64_t i = 0; i < kCrcStream; ++i)
        crc = (crc >> 8) ^ table[crc & 0xff];
      for (uint32_t low = 0; low < (1u << bit); ++low)
        shift[byte][(1u << bit) + low] = shift[byte][low] ^ crc;
    }
  }
  return shift;
}

uint32_t ShiftStream(uint32_t crc) {
  static const std::array<CrcTable, 4> shift = MakeShiftTables();
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
         shift[3][crc >> 24];
}

uint64_t LoadWord(const unsigned char *data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) uint32_t CrcInstruction(uint32_t crc, const unsigned char *data,
                                                          int64_t bytes) {
  for (; bytes >= 3 * kCrcStream; bytes -= 3 * kCrcStream) {
    uint64_t first = crc, second = 0, third = 0;
    for (int64_t i = 0; i < kCrcStream; i += 8) {
      first = __builtin_ia32_crc32di(first, LoadWord(data + i));
      second = __builtin_ia32_crc32di(second, LoadWord(data + kCrcStream + i));
      third = __builtin_ia32_crc32di(third, LoadWord(data + 2 * kCrcStream + i));
    }
    crc = ShiftStream(ShiftStream(uint32_t(first)) ^ uint32_t(second)) ^ uint32_t(third);
    data += 3 * kCrcStream;
  }
  uint64_t rest = crc;
  for (; bytes >= 8; bytes -= 8, data += 8)
    rest = __builtin_ia32_crc32di(rest, LoadWord(data));
  return CrcBytes(uint32_t(rest), data, bytes);
}
#endif

} // namespace

uint32_t Crc32c(const void *data, int64_t bytes) {
  auto *begin = static_cast<const unsigned char *>(data);
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction)
    return ~CrcInstruction(~uint32_t(0), begin, bytes);
#endif
  return ~CrcBytes(~uint32_t(0), begin, bytes);
}

} // namespace boa
