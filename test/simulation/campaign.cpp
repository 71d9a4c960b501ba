//===- campaign.cpp - boa-campaign ----------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   boa-campaign --seeds 1..1000
//   boa-campaign --seconds 60 --faults power_loss,kill --paths 2
//   boa-campaign --seed 17 --verbose
//   boa-campaign --flips 10000
//
//===----------------------------------------------------------------------===//
#include "test/simulation/campaign.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace boa {
namespace {

constexpr unsigned kMostSeconds = 60; // for one seed, on any machine

volatile uint64_t present_seed = 0;

/// Says which seed it was before the process goes.
void OnSignal(int signal) {
  char text[160];
  int bytes = std::snprintf(
      text, sizeof(text), "seed %llu: %s\n  replay: boa-campaign --seed %llu --verbose\n",
      static_cast<unsigned long long>(present_seed), signal == SIGALRM ? "hangs" : "crashes",
      static_cast<unsigned long long>(present_seed));
  if (write(2, text, size_t(bytes)) < 0)
    _exit(3);
  _exit(2);
}

struct Arguments {
  CampaignOptions options;
  uint64_t first = 1, last = 0; // last 0: until the time is over
  double seconds = 0;           // 0: no end but that of the seeds
  int64_t flips = 0;
  int failures = 10; // after so many it ends
  std::string given; // what to replay with, beside the seed
};

int Usage() {
  std::fprintf(stderr,
               "boa-campaign [--seeds A..B] [--seconds N] [--seed N] [--flips N] [--failures N]\n"
               "             [--faults NAME,NAME...] [--paths 1|2|3] [--verbose]\n"
               "faults:");
  for (size_t i = 0; i < kFaults; ++i)
    std::fprintf(stderr, " %s", FaultName(Fault(i)));
  std::fprintf(stderr, "\n");
  return 64;
}

bool ParseFaults(const std::string &list, std::vector<Fault> &faults) {
  for (absl::string_view name : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    size_t i = 0;
    while (i < kFaults && name != FaultName(Fault(i)))
      ++i;
    if (i == kFaults)
      return false;
    faults.push_back(Fault(i));
  }
  return true;
}

bool Parse(int argc, char **argv, Arguments &arguments) {
  bool chosen = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      arguments.options.verbose = true;
      continue;
    }
    if (++i == argc)
      return false;
    const std::string value = argv[i];
    bool good = true;
    if (name == "--seed") {
      good = absl::SimpleAtoi(value, &arguments.first);
      arguments.last = arguments.first;
    } else if (name == "--seeds") {
      std::vector<std::string> ends = absl::StrSplit(value, "..");
      good = ends.size() == 2 && absl::SimpleAtoi(ends[0], &arguments.first) &&
             absl::SimpleAtoi(ends[1], &arguments.last);
    } else if (name == "--seconds") {
      good = absl::SimpleAtod(value, &arguments.seconds);
    } else if (name == "--failures") {
      good = absl::SimpleAtoi(value, &arguments.failures);
    } else if (name == "--flips") {
      good = absl::SimpleAtoi(value, &arguments.flips);
    } else if (name == "--paths") {
      good = absl::SimpleAtoi(value, &arguments.options.paths) && arguments.options.paths > 0;
      arguments.given += " --paths " + value;
    } else if (name == "--faults") {
      chosen = true;
      good = ParseFaults(value, arguments.options.faults);
      arguments.given += " --faults " + value;
    } else {
      return false;
    }
    if (!good)
      return false;
  }
  if (arguments.last == 0 && arguments.seconds == 0)
    arguments.seconds = 60;
  for (size_t i = 0; !chosen && i < kFaults; ++i)
    arguments.options.faults.push_back(Fault(i));
  return true;
}

void Print(const Tally &tally, double seconds, int failures) {
  std::printf("%lld seeds in %.1f s, %.0f a minute: %d failed\n",
              static_cast<long long>(tally.runs), seconds, 60 * double(tally.runs) / seconds,
              failures);
  std::printf("%lld processes: %lld finished, %lld stopped, %lld died; %lld runs were refused for "
              "damage at rest\n",
              static_cast<long long>(tally.processes), static_cast<long long>(tally.finished),
              static_cast<long long>(tally.stopped), static_cast<long long>(tally.died),
              static_cast<long long>(tally.refused));
  std::printf("%lld operations on disks, %lld choices of the scheduler\n",
              static_cast<long long>(tally.operations), static_cast<long long>(tally.choices));
  for (size_t i = 0; i < kFaults; ++i)
    std::printf("  %-18s %10lld\n", FaultName(Fault(i)),
                static_cast<long long>(tally.faults.counts[i]));
}

int RunCampaign(const Arguments &arguments, Trainers &trainers) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Tally tally;
  int failures = 0;
  for (uint64_t seed = arguments.first; failures < arguments.failures; ++seed) {
    if ((arguments.last > 0 && seed > arguments.last) ||
        (arguments.seconds > 0 && elapsed() >= arguments.seconds))
      break;
    present_seed = seed;
    alarm(kMostSeconds);
    std::string failure = RunProgram(seed);
    if (failure.empty())
      failure = RunSeed(seed, arguments.options, trainers, tally);
    alarm(0);
    if (failure.empty())
      continue;
    ++failures;
    std::fprintf(stderr,
                 "seed %llu (after %.1f s): %s\n  replay: boa-campaign --seed %llu%s --verbose\n",
                 static_cast<unsigned long long>(seed), elapsed(), failure.c_str(),
                 static_cast<unsigned long long>(seed), arguments.given.c_str());
  }
  Print(tally, elapsed(), failures);
  return failures > 0;
}

} // namespace
} // namespace boa

int main(int argc, char **argv) {
  boa::Arguments arguments;
  if (!boa::Parse(argc, argv, arguments))
    return boa::Usage();
  for (int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE})
    std::signal(signal, boa::OnSignal);
  // Little files, many times: in memory, if there is such a place.
  if (access("/dev/shm", W_OK) == 0)
    setenv("TMPDIR", "/dev/shm", 0);
  boa::Scratch scratch;
  boa::Trainers trainers(scratch.path());
  if (arguments.flips > 0)
    return boa::RunFlips(arguments.flips, arguments.first, arguments.options, trainers) ? 0 : 1;
  return boa::RunCampaign(arguments, trainers);
}
