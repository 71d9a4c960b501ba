//===- tensorboard.cpp - The measurements of steps for TensorBoard --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/view/tensorboard.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace boa {
namespace {

constexpr absl::string_view kMark = ".tfevents."; // by which TensorBoard knows its files

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

/// CRC-32C (RFC 3720, B.4), masked as TFRecord has it.
uint32_t MaskedCrc(absl::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> made;
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit)
        crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
      made[i] = crc;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ byte) & 0xff];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename T> void AppendRaw(std::string &to, T value) {
  to.append(reinterpret_cast<const char *>(&value), sizeof(value)); // this machine is little-endian
}

std::string RecordOf(absl::string_view data) {
  std::string record;
  AppendRaw(record, uint64_t(data.size()));
  AppendRaw(record, MaskedCrc(record));
  absl::StrAppend(&record, data);
  AppendRaw(record, MaskedCrc(data));
  return record;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// A message in protobuf's encoding.
class EventMessage {
public:
  EventMessage &Whole(int field, uint64_t value) {
    Varint(uint64_t(field) << 3);
    Varint(value);
    return *this;
  }
  EventMessage &Double(int field, double value) {
    Varint(uint64_t(field) << 3 | 1);
    AppendRaw(bytes, value);
    return *this;
  }
  EventMessage &Float(int field, float value) {
    Varint(uint64_t(field) << 3 | 5);
    AppendRaw(bytes, value);
    return *this;
  }
  /// A text, or a message.
  EventMessage &Bytes(int field, absl::string_view value) {
    Varint(uint64_t(field) << 3 | 2);
    Varint(value.size());
    absl::StrAppend(&bytes, value);
    return *this;
  }
  const std::string &data() const { return bytes; }

private:
  void Varint(uint64_t value) {
    for (; value >= 128; value >>= 7)
      bytes.push_back(char(value | 128));
    bytes.push_back(char(value));
  }
  std::string bytes;
};

// Fields of tensorflow.Event, Summary and SessionLog (event.proto, summary.proto).
enum { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum { kValue = 1, kTag = 1, kSimpleValue = 2 };
enum { kSessionStatus = 1, kSessionStart = 1 };

EventMessage EventNow() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return EventMessage().Double(kWallTime, now.count());
}

} // namespace

absl::Status EventFile::Check(const std::string &folder, const std::string &identity) {
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StrContains(name, kMark) && (identity.empty() || !absl::EndsWith(name, identity)))
      return absl::AlreadyExistsError(
          absl::StrCat("--tensorboard: `", folder, "` holds the events of another run (", name,
                       "), and TensorBoard would mix them: name a new folder"));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return absl::FailedPreconditionError(
        absl::StrCat("--tensorboard: cannot read the folder `", folder, "`: ", error.message()));
  return absl::OkStatus();
}

absl::StatusOr<EventFile> EventFile::Create(const std::string &folder, const std::string &identity,
                                            int64_t after) {
  if (absl::Status status = Check(folder, identity); !status.ok())
    return status;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::FailedPreconditionError(
        absl::StrCat("--tensorboard: cannot make the folder `", folder, "`: ", error.message()));
  // TensorBoard reads the files of a folder in the order of their names.
  int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  std::string path;
  do
    path = absl::StrFormat("%s/events.out%s%010d.%s", folder, kMark, seconds++, identity);
  while (std::filesystem::exists(path, error));
  absl::StatusOr<OutputFile> opened = OutputFile::Open(path);
  if (!opened.ok())
    return opened.status();
  EventFile events;
  events.file = *std::move(opened);
  std::string text = RecordOf(EventNow().Bytes(kFileVersion, "brain.Event:2").data());
  text +=
      RecordOf(EventNow()
                   .Whole(kStep, uint64_t(after) + 1)
                   .Bytes(kSessionLog, EventMessage().Whole(kSessionStatus, kSessionStart).data())
                   .data());
  absl::Status status = events.file.Append(text.data(), int64_t(text.size()));
  if (!status.ok())
    return status;
  return events;
}

absl::Status EventFile::Write(const StepRecord &record) {
  EventMessage summary;
  auto add = [&](absl::string_view tag, double value) {
    summary.Bytes(kValue, EventMessage().Bytes(kTag, tag).Float(kSimpleValue, float(value)).data());
  };
  add("train/loss", record.loss);
  if (record.validation_loss)
    add("validation/loss", *record.validation_loss);
  add("train/learning_rate", record.rate);
  if (record.gradient_norm)
    add("train/gradient_norm", *record.gradient_norm);
  for (const auto &[source, tokens] : record.tokens_of)
    add(absl::StrCat("tokens/", source), double(tokens));
  if (record.seconds > 0) {
    add("speed/tokens_per_second", double(record.tokens) / record.seconds);
    for (const auto &[link, seconds] : record.waited)
      add(absl::StrCat("waited/", link), seconds / record.seconds);
  }
  const std::string bytes = RecordOf(
      EventNow().Whole(kStep, uint64_t(record.step)).Bytes(kSummary, summary.data()).data());
  return file.Append(bytes.data(), int64_t(bytes.size()));
}

} // namespace boa
