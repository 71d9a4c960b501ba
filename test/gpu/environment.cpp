//===- environment.cpp - Which GPU it is ----------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the driver says, which is there without nvidia-smi, too; and that a kernel's worth of work
// comes back from it.
//
//===----------------------------------------------------------------------===//
#include "test/gpu/measures.h"
#include "test/gpu/timing.h"

#include "absl/strings/str_format.h"

#include <cstdio>
#include <fstream>

namespace boa::gputest {
namespace {

// CUdevice_attribute
enum Attribute {
  kClockKhz = 13,
  kMultiprocessors = 16,
  kComputeMode = 20,
  kPciBus = 33,
  kPciDevice = 34,
  kMemoryKhz = 36,
  kBusBits = 37,
  kL2Bytes = 38,
  kCopyEngines = 40,
  kPciDomain = 50,
};

/// -1 where the driver knows none.
int Ask(const Session &session, Attribute attribute) {
  int value = -1;
  return session.driver().DeviceGetAttribute.address(&value, attribute, 0) == cuda::kSuccess ? value
                                                                                             : -1;
}

/// What a file of /sys says of the device, or "?".
std::string ReadWord(const std::string &path) {
  std::ifstream file(path);
  std::string word;
  return std::getline(file, word) && !word.empty() ? word : "?";
}

/// Bytes there and back.
absl::Status Echo(const Session &session) {
  DeviceMemory memory(session);
  const std::string sent = "anything";
  std::string got(sent.size(), '\0');
  absl::Status status = memory.Allocate(sent.size());
  if (status.ok())
    status = memory.Put(0, sent.data(), sent.size());
  if (status.ok())
    status = memory.Get(0, got.data(), got.size());
  return !status.ok() || got == sent
             ? status
             : absl::DataLossError("what was copied to the device came back as other bytes");
}

} // namespace

int ShowEnvironment() {
  auto opened = Session::Open();
  if (!opened.ok())
    return NotMeasured("what the GPU is", opened.status());
  const Session &session = **opened;
  size_t free = 0, total = 0;
  absl::Status status = session.AskMemory(free, total);
  std::printf("GPU: %s, driver %s\n", session.gpu().Describe().c_str(),
              session.driver().Describe().c_str());
  std::printf("memory: %.0f MiB, %.0f MiB free; %d multiprocessors; L2 %.0f MiB; %d copy engines; "
              "compute mode %d\n",
              double(total) / 1048576, double(free) / 1048576, Ask(session, kMultiprocessors),
              double(Ask(session, kL2Bytes)) / 1048576, Ask(session, kCopyEngines),
              Ask(session, kComputeMode));
  const int khz = Ask(session, kMemoryKhz), bits = Ask(session, kBusBits);
  std::printf("highest clocks: %d MHz, memory %d MHz, %d bits wide: %.0f GB/s\n",
              Ask(session, kClockKhz) / 1000, khz / 1000, bits, 2e3 * khz * bits / 8 * 1e-9);
  const std::string place = absl::StrFormat("%04x:%02x:%02x.0", Ask(session, kPciDomain),
                                            Ask(session, kPciBus), Ask(session, kPciDevice));
  const std::string at = "/sys/bus/pci/devices/" + place + "/";
  std::printf("PCI %s: now %s x%s, at most %s x%s; NUMA node %s, its CPUs %s\n", place.c_str(),
              ReadWord(at + "current_link_speed").c_str(),
              ReadWord(at + "current_link_width").c_str(), ReadWord(at + "max_link_speed").c_str(),
              ReadWord(at + "max_link_width").c_str(), ReadWord(at + "numa_node").c_str(),
              ReadWord(at + "local_cpulist").c_str());
  if (status.ok())
    status = Echo(session);
  if (!status.ok())
    return NotMeasured("whether bytes come back from the GPU", status);
  std::printf("bytes go to the GPU and come back\n");
  return 0;
}

} // namespace boa::gputest
