//===- emulator.cpp - Runs a launch of an emulated kernel -------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/emulator.h"

#include "test/fake_cuda/fiber.h"
#include "test/fake_cuda/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace boa::fake {
namespace {

constexpr int kWarp = 32;
/// Operations of all lanes of a warp: shuffles, then others of boa_emulated_thread.
enum Mode { kXor, kUp, kDown, kIndex, kMultiply, kMatrices };
const char *const kModes[] = {"shuffles xor",   "shuffles up", "shuffles down",
                              "shuffles index", "multiplies",  "loads matrices"};

/// A copy that is on its way.
struct Copy {
  void *to;
  const void *from;
  int32_t bytes; // of 16, the others zeros
};
constexpr int kCopyBytes = 16;

/// Fibers of launches that are over, for those to come.
class FiberPool {
public:
  using Fibers = std::vector<std::unique_ptr<Fiber>>;
  Fibers Take() {
    std::lock_guard<std::mutex> lock(mutex);
    if (idle.empty())
      return {};
    Fibers fibers = std::move(idle.back());
    idle.pop_back();
    return fibers;
  }
  void Give(Fibers fibers) {
    std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(fibers));
  }

private:
  std::mutex mutex;
  std::vector<Fibers> idle;
};

FiberPool &Pool() {
  static auto *pool = new FiberPool;
  return *pool;
}

std::string Text(const int64_t (&p)[3]) {
  char text[80];
  snprintf(text, sizeof text, "(%lld, %lld, %lld)", static_cast<long long>(p[0]),
           static_cast<long long>(p[1]), static_cast<long long>(p[2]));
  return text;
}

/// Runs blocks of one launch, one after another.
class BlockRunner {
public:
  explicit BlockRunner(const Launch &);
  ~BlockRunner();
  std::string Run(int64_t block, uint64_t seed);

private:
  enum class State { ready, running, barrier, shuffle, ended };
  struct Lane : boa_emulated_thread {
    BlockRunner *runner;
    Fiber *fiber = nullptr;
    State state = State::ready;
    uint32_t value; // of a shuffle: what is given, then what is got
    int32_t offset, mode;
    const void *row;                              // of kMatrices
    uint32_t *registers;                          // of those after shuffles
    std::vector<std::vector<Copy>> groups = {{}}; // of copies; the last one is open
  };

  static Lane &Of(boa_emulated_thread *thread) { return *static_cast<Lane *>(thread); }
  static void Barrier(boa_emulated_thread *);
  static uint32_t Shuffle(boa_emulated_thread *, uint32_t value, int32_t offset, int32_t width,
                          int32_t mode);
  static void Fault(boa_emulated_thread *, const char *what);
  static void Multiply(boa_emulated_thread *, uint32_t *registers);
  static void Matrices(boa_emulated_thread *, const void *row, int32_t transpose,
                       uint32_t *registers);
  static void BeginCopy(boa_emulated_thread *, void *to, const void *from, int32_t bytes);
  static void EndGroup(boa_emulated_thread *);
  static void Wait(boa_emulated_thread *, int32_t latest);
  static void Body(void *lane);

  int WarpBegin(int lane) const { return lane / kWarp * kWarp; }
  int WarpEnd(int lane) const { return std::min(WarpBegin(lane) + kWarp, int(lanes.size())); }
  void Step(int lane);
  void Exchange(int first);
  void ExchangeValues(int first);
  void Release();
  void RunReady(Random &);
  std::string Stuck() const;
  std::string Name(const Lane &) const;

  const Launch &launch;
  std::vector<Lane> lanes;
  char *shared = nullptr;
  int64_t shared_bytes;
  FiberPool::Fibers fibers;
  std::vector<Fiber *> idle;
  int at_barrier = 0, ended = 0;
  // By warp: lanes that may go on, and how many wait at a shuffle.
  std::vector<std::vector<int>> ready;
  std::vector<int> at_shuffle;
  std::vector<int> ready_warps; // of which lanes may go on
  std::string error;
};

BlockRunner::BlockRunner(const Launch &launch)
    : launch(launch), lanes(launch.block[0] * launch.block[1] * launch.block[2]),
      shared_bytes((launch.function->shared_bytes + 15) / 16 * 16 + launch.dynamic_bytes),
      fibers(Pool().Take()) {
  if (shared_bytes)
    shared = static_cast<char *>(::operator new(shared_bytes, std::align_val_t(128)));
  for (size_t i = 0; i < lanes.size(); ++i) {
    Lane &lane = lanes[i];
    int64_t left = i;
    for (int d = 0; d < 3; ++d) {
      lane.thread[d] = left % launch.block[d];
      left /= launch.block[d];
      lane.block_dim[d] = launch.block[d];
      lane.grid_dim[d] = launch.grid[d];
    }
    lane.shared = shared;
    lane.barrier = Barrier;
    lane.shuffle = Shuffle;
    lane.fault = Fault;
    lane.multiply = Multiply;
    lane.matrices = Matrices;
    lane.copy = BeginCopy;
    lane.group = EndGroup;
    lane.wait = Wait;
    lane.runner = this;
  }
  for (auto &fiber : fibers)
    idle.push_back(fiber.get());
}

BlockRunner::~BlockRunner() {
  if (shared)
    ::operator delete(shared, std::align_val_t(128));
  Pool().Give(std::move(fibers));
}

std::string BlockRunner::Name(const Lane &lane) const {
  return std::string("kernel '") + launch.function->name + "', block " + Text(lane.block) +
         ", thread " + Text(lane.thread);
}

// On the lane's fiber, as what these call of it is.

void BlockRunner::Barrier(boa_emulated_thread *thread) {
  Lane &lane = Of(thread);
  lane.state = State::barrier;
  lane.fiber->Suspend();
}

uint32_t BlockRunner::Shuffle(boa_emulated_thread *thread, uint32_t value, int32_t offset,
                              int32_t width, int32_t mode) {
  Lane &lane = Of(thread);
  if (width != kWarp || mode < kXor || mode > kIndex) {
    char what[80];
    snprintf(what, sizeof what, "a shuffle of width %d and mode %d: there are 32, and 0 to 3",
             width, mode);
    Fault(thread, what);
  }
  lane.value = value;
  lane.offset = offset;
  lane.mode = mode;
  lane.state = State::shuffle;
  lane.fiber->Suspend();
  return lane.value;
}

void BlockRunner::Fault(boa_emulated_thread *thread, const char *what) {
  Lane &lane = Of(thread);
  lane.runner->error = lane.runner->Name(lane) + ": " + what;
  lane.fiber->Suspend();
}

void BlockRunner::Multiply(boa_emulated_thread *thread, uint32_t *registers) {
  Lane &lane = Of(thread);
  lane.registers = registers;
  lane.mode = kMultiply;
  lane.state = State::shuffle;
  lane.fiber->Suspend();
}

void BlockRunner::Matrices(boa_emulated_thread *thread, const void *row, int32_t transpose,
                           uint32_t *registers) {
  Lane &lane = Of(thread);
  if (reinterpret_cast<uintptr_t>(row) % kCopyBytes)
    Fault(thread, "a row of a matrix is not at a multiple of 16");
  lane.row = row;
  lane.offset = transpose;
  lane.registers = registers;
  lane.mode = kMatrices;
  lane.state = State::shuffle;
  lane.fiber->Suspend();
}

void BlockRunner::BeginCopy(boa_emulated_thread *thread, void *to, const void *from,
                            int32_t bytes) {
  if (reinterpret_cast<uintptr_t>(to) % kCopyBytes ||
      reinterpret_cast<uintptr_t>(from) % kCopyBytes)
    Fault(thread, "a copy is not at a multiple of 16");
  if (bytes < 0 || bytes > kCopyBytes)
    Fault(thread, "a copy is not of 0 to 16 bytes");
  // A read before the wait finds NaN.
  memset(to, 0xff, kCopyBytes);
  Of(thread).groups.back().push_back({to, from, bytes});
}

void BlockRunner::EndGroup(boa_emulated_thread *thread) { Of(thread).groups.emplace_back(); }

void BlockRunner::Wait(boa_emulated_thread *thread, int32_t latest) {
  std::vector<std::vector<Copy>> &groups = Of(thread).groups;
  const size_t open = 1 + size_t(latest);
  if (groups.size() <= open)
    return;
  const auto end = groups.end() - open;
  for (auto group = groups.begin(); group != end; ++group)
    for (const Copy &copy : *group) {
      memset(copy.to, 0, kCopyBytes);
      memcpy(copy.to, copy.from, copy.bytes);
    }
  groups.erase(groups.begin(), end);
}

void BlockRunner::Body(void *data) {
  Lane &lane = *static_cast<Lane *>(data);
  lane.runner->launch.function->body(&lane, lane.runner->launch.args);
  lane.state = State::ended;
}

/// Runs a lane until it waits, ends or fails.
void BlockRunner::Step(int i) {
  Lane &lane = lanes[i];
  if (!lane.fiber) {
    if (idle.empty()) {
      fibers.push_back(std::make_unique<Fiber>(int(fibers.size())));
      idle.push_back(fibers.back().get());
    }
    lane.fiber = idle.back();
    idle.pop_back();
    lane.fiber->Start(Body, &lane);
  }
  lane.state = State::running;
  lane.fiber->Resume();
  if (!error.empty())
    return;
  switch (lane.state) {
  case State::ended:
    idle.push_back(lane.fiber);
    lane.fiber = nullptr;
    ++ended;
    break;
  case State::barrier:
    ++at_barrier;
    break;
  case State::shuffle:
    if (++at_shuffle[i / kWarp] == kWarp)
      Exchange(WarpBegin(i));
    break;
  default:
    break;
  }
}

void BlockRunner::Exchange(int first) {
  at_shuffle[first / kWarp] = 0;
  const void *rows[kWarp];
  uint32_t *registers[kWarp];
  for (int i = 0; i < kWarp; ++i) {
    const Lane &lane = lanes[first + i], &other = lanes[first];
    if (lane.mode != other.mode || (lane.mode == kMatrices && lane.offset != other.offset)) {
      error = Name(lane) + ": " + kModes[lane.mode] + " where the first of its warp " +
              kModes[other.mode];
      return;
    }
    rows[i] = lane.row;
    registers[i] = lane.registers;
  }
  if (lanes[first].mode == kMultiply)
    MultiplyTile(registers);
  else if (lanes[first].mode == kMatrices)
    LoadMatrices(rows, /*transpose=*/lanes[first].offset, registers);
  else
    ExchangeValues(first);
  for (int i = 0; i < kWarp; ++i) {
    lanes[first + i].state = State::ready;
    ready[first / kWarp].push_back(first + i);
  }
}

void BlockRunner::ExchangeValues(int first) {
  uint32_t values[kWarp];
  for (int i = 0; i < kWarp; ++i) {
    const Lane &lane = lanes[first + i];
    int64_t from[] = {int64_t(i) ^ lane.offset, int64_t(i) - lane.offset, int64_t(i) + lane.offset,
                      lane.offset & (kWarp - 1)};
    int64_t source = from[lane.mode];
    values[i] = lanes[first + (source < 0 || source >= kWarp ? i : source)].value;
  }
  for (int i = 0; i < kWarp; ++i)
    lanes[first + i].value = values[i];
}

/// All lanes may go on.
void BlockRunner::Release() {
  ready_warps.clear();
  for (int i = 0; i < int(lanes.size()); ++i) {
    if (i % kWarp == 0)
      ready_warps.push_back(i / kWarp);
    lanes[i].state = State::ready;
    ready[i / kWarp].push_back(i);
  }
}

/// Runs lanes in an order that is drawn until none may go on. Mostly one of the same warp is next:
/// so much is in a processor's nearest cache.
void BlockRunner::RunReady(Random &random) {
  constexpr size_t kNone = SIZE_MAX;
  size_t at = kNone;
  while (!ready_warps.empty() && error.empty()) {
    if (at == kNone || random.Below(kWarp) == 0)
      at = random.Below(ready_warps.size());
    std::vector<int> &of = ready[ready_warps[at]];
    std::swap(of[random.Below(of.size())], of.back());
    const int lane = of.back();
    of.pop_back();
    Step(lane);
    if (of.empty()) {
      ready_warps[at] = ready_warps.back();
      ready_warps.pop_back();
      at = kNone;
    }
  }
}

/// Why no lane can go on: some wait for one that does something else.
std::string BlockRunner::Stuck() const {
  const char *const doing[] = {"is ready", "runs", "waits at a barrier", "waits at a shuffle",
                               "has ended"};
  for (int i = 0; i < int(lanes.size()); ++i) {
    if (lanes[i].state != State::shuffle)
      continue;
    for (int other = WarpBegin(i); other < WarpEnd(i); ++other)
      if (lanes[other].state != State::shuffle)
        return Name(lanes[i]) + ": waits at a shuffle, but thread " + Text(lanes[other].thread) +
               " of its warp " + doing[int(lanes[other].state)];
    return Name(lanes[i]) + ": shuffles in a warp of " + std::to_string(WarpEnd(i) - WarpBegin(i)) +
           " lanes, where there must be 32";
  }
  auto waiting = std::find_if(lanes.begin(), lanes.end(),
                              [](const Lane &lane) { return lane.state == State::barrier; });
  auto other = std::find_if(lanes.begin(), lanes.end(),
                            [](const Lane &lane) { return lane.state != State::barrier; });
  return Name(*waiting) + ": waits at a barrier that thread " + Text(other->thread) +
         " never reaches: it " + doing[int(other->state)];
}

std::string BlockRunner::Run(int64_t block, uint64_t seed) {
  Random random(seed);
  if (shared)
    memset(shared, 0xff, shared_bytes);
  int64_t at[3] = {block % launch.grid[0], block / launch.grid[0] % launch.grid[1],
                   block / launch.grid[0] / launch.grid[1]};
  for (Lane &lane : lanes) {
    std::copy(at, at + 3, lane.block);
    lane.groups.assign(1, {});
  }
  at_barrier = ended = 0;
  const size_t warps = (lanes.size() + kWarp - 1) / kWarp;
  at_shuffle.assign(warps, 0);
  ready.assign(warps, {});
  Release();
  for (;;) {
    RunReady(random);
    if (error.empty() && ended == int(lanes.size()))
      return {};
    if (error.empty() && at_barrier == int(lanes.size())) {
      at_barrier = 0;
      Release();
      continue;
    }
    if (error.empty())
      error = Stuck();
    for (Lane &lane : lanes)
      if (lane.fiber) {
        lane.fiber->Abandon();
        idle.push_back(std::exchange(lane.fiber, nullptr));
      }
    return std::exchange(error, {});
  }
}

} // namespace

std::string RunLaunch(const Launch &launch) {
  int64_t count = launch.grid[0] * launch.grid[1] * launch.grid[2];
  Random random(launch.seed);
  std::vector<int64_t> order(count);
  for (int64_t i = 0; i < count; ++i)
    order[i] = i;
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[random.Below(i + 1)]);
  uint64_t seed = random.Next();

  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::string error; // the first, under the mutex
  auto work = [&] {
    BlockRunner runner(launch);
    for (int64_t i; (i = next++) < count;) {
      std::string words = runner.Run(order[i], seed ^ order[i]);
      if (words.empty())
        continue;
      next = count;
      std::lock_guard<std::mutex> lock(mutex);
      if (error.empty())
        error = std::move(words);
    }
  };
  // A thread is made in the time of some hundred fibers.
  int64_t fibers = count * launch.block[0] * launch.block[1] * launch.block[2];
  std::vector<std::thread> helpers;
  for (int64_t i = 1; i < std::min({int64_t(launch.threads), count, fibers / 1024}); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return error;
}

} // namespace boa::fake
