//===- graph.cpp - Which command waits for which --------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the driver asks for is in engine/graph_commands.cpp, slots and handles in
// engine/graph_memory.cpp.
//
//===----------------------------------------------------------------------===//
#include "runtime/engine/graph.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

namespace boa {

Graph::Graph(const Program &program, ChunkExtents *places, bool device_orders)
    : program(program), places_on_ssd(places),
      device_orders(device_orders && IsSeparate(program.machine)) {
  LayOut();
}

//===----------------------------------------------------------------------===//
// Dependences
//===----------------------------------------------------------------------===//

uint32_t Graph::New(Kind kind) {
  uint32_t id = uint32_t(commands.size());
  if (free_commands.empty()) {
    commands.emplace_back();
  } else {
    id = free_commands.back();
    free_commands.pop_back();
  }
  Command &command = commands[id];
  command.work.kind = kind;
  command.work.id = id;
  command.work.run = run;
  command.work.storage = command.work.first = command.work.count = command.work.index = 0;
  command.work.entry = command.work.step = command.work.bytes = command.work.priority = 0;
  command.work.outside = nullptr;
  command.sequence = ++sequence;
  command.unmet = 1;
  command.touched = 0;
  command.cause = Cause::none;
  command.first_use = 0;
  command.given = false;
  ++incomplete;
  return id;
}

bool Graph::IsOver(Reference reference) const {
  return reference.id == 0 || commands[reference.id].generation != reference.generation;
}

/// What is ahead in the same queue is over first anyway.
static bool SameQueue(Work::Kind a, Work::Kind b) {
  using Kind = Work::Kind;
  auto optimizer = [](Kind kind) {
    return kind == Kind::update || kind == Kind::norm || kind == Kind::norm_done;
  };
  return (a == Kind::kernel && b == Kind::kernel) || (optimizer(a) && optimizer(b));
}

/// Whether the device fills its memory or copies from it, which its buffers tell.
bool Graph::FillsOnDevice(const Command &command) const {
  return command.work.IsFill() &&
         std::any_of(command.uses.begin(), command.uses.end(),
                     [&](const Use &use) { return buffers[use.buffer].space == BOA_DEVICE; });
}

void Graph::DependOn(uint32_t id, Reference on) {
  if (IsOver(on) || on.id == id || SameQueue(commands[id].work.kind, commands[on.id].work.kind))
    return;
  // Kernels alone: a copy that waited on the device would hold up all those behind it.
  if (device_orders && commands[id].work.kind == Kind::kernel && FillsOnDevice(commands[on.id])) {
    Command &before = commands[on.id], &command = commands[id];
    if (!command.after.empty() && command.after.back().id == on.id)
      return;
    command.after.push_back(on);
    before.followers.push_back({id, command.generation});
    command.unmet += !before.given;
    return;
  }
  // All chunks of what one command brings are its.
  std::vector<uint32_t> &dependents = commands[on.id].dependents;
  if (!dependents.empty() && dependents.back() == id)
    return;
  dependents.push_back(id);
  ++commands[id].unmet;
}

/// What a read brings is used in program order: by this command first of all.
void Graph::NoteUse(Reference writer, uint32_t id) {
  if (IsOver(writer))
    return;
  Command &read = commands[writer.id];
  if (read.work.kind == Kind::read && read.first_use == 0)
    read.first_use = commands[id].sequence;
}

void Graph::Read(uint32_t id, Hazard &hazard) {
  DependOn(id, hazard.writer);
  ++commands[id].touched;
  const Reference self{id, commands[id].generation};
  // What is only ever read must not gather readers for ever; of kernels the last is
  // the last to be over.
  for (Reference &reader : hazard.readers)
    if (IsOver(reader) || SameQueue(commands[reader.id].work.kind, commands[id].work.kind)) {
      reader = self;
      return;
    }
  hazard.readers.push_back(self);
}

void Graph::Write(uint32_t id, Hazard &hazard) {
  DependOn(id, hazard.writer);
  ++commands[id].touched;
  for (Reference reader : hazard.readers)
    DependOn(id, reader);
  hazard.readers.clear();
  hazard.writer = {id, commands[id].generation};
}

void Graph::Reads(uint32_t id, uint32_t buffer, int32_t first, int32_t count) {
  Buffer &from = buffers[buffer];
  for (int32_t c = first - from.first; c < first - from.first + count; ++c) {
    NoteUse(from.hazards[c].writer, id);
    Read(id, from.hazards[c]);
  }
}

void Graph::Writes(uint32_t id, uint32_t buffer, int32_t first, int32_t count) {
  Buffer &to = buffers[buffer];
  for (int32_t c = first - to.first; c < first - to.first + count; ++c) {
    NoteUse(to.hazards[c].writer, id);
    Write(id, to.hazards[c]);
  }
}

//===----------------------------------------------------------------------===//
// From issued to over
//===----------------------------------------------------------------------===//

/// What a run waits for: not transfers, and not slots.
int64_t *Graph::Left(const Work &work) {
  if (work.run == kNoRun || work.IsTransfer() || work.kind == Kind::create ||
      work.kind == Kind::release)
    return nullptr;
  Run &of = runs[work.run];
  return work.kind == Kind::kernel ? &of.kernels_left : &of.others_left;
}

/// The command with its lists; and for a chunk its extent, and in a buffer its hazard with
/// a reader, or a dependent in another command.
int64_t Graph::BytesOf(const Command &command) {
  constexpr int64_t kCommand = 400, kChunk = 64, kFollowed = 4 * sizeof(Reference);
  return kCommand + kChunk * command.touched + kFollowed * int64_t(command.after.size());
}

/// All dependences are known: the command may run when they are met.
void Graph::Issue(uint32_t id) {
  const Work &work = commands[id].work;
  if (int64_t *left = Left(work))
    ++*left;
  incomplete_bytes += BytesOf(commands[id]);
  if (work.kind == Kind::kernel) {
    ++runs[work.run].kernels;
    compute.push_back(id);
  } else if (SameQueue(work.kind, Kind::update)) {
    optimizer.push_back(id);
  }
  Satisfy(id, Cause::none);
}

void Graph::Satisfy(uint32_t id, Cause cause) {
  Command &command = commands[id];
  if (cause != Cause::none)
    command.cause = cause;
  if (--command.unmet == 0)
    Ready(id);
}

void Graph::Ready(uint32_t id) {
  Command &command = commands[id];
  command.ready_ns = now_ns;
  const Kind kind = command.work.kind;
  if (command.work.IsTransfer()) {
    transfers.push_back(id);
  } else if (command.work.IsFill()) {
    fills.push_back(id);
  } else if (kind == Kind::create) {
    Finish(id, command.cause);
  } else if (kind == Kind::release) {
    GiveBack(command.uses[0].buffer, command.cause);
    Finish(id, command.cause);
  }
}

/// Keeps the memory of a short list for its next use, and gives that of a long one back.
template <typename T> static void Empty(std::vector<T> &list) {
  list.clear();
  if (list.capacity() > 16)
    list.shrink_to_fit();
}

/// It is over, for this reason in the eyes of those that waited for it.
void Graph::Finish(uint32_t id, Cause cause) {
  Command &command = commands[id];
  ++command.generation;
  --incomplete;
  incomplete_bytes -= BytesOf(command);
  if (int64_t *left = Left(command.work)) {
    --*left;
    runs[command.work.run].end_ns = now_ns;
  }
  // Satisfying one may begin another in this place of the table: not before the end.
  std::vector<uint32_t> dependents;
  dependents.swap(command.dependents);
  for (uint32_t dependent : dependents)
    Satisfy(dependent, cause);
  command.dependents.swap(dependents);
  // Only now is there what these waited for, given out or not.
  for (Reference follower : command.followers)
    if (!IsOver(follower)) {
      commands[follower.id].ready_ns = now_ns;
      if (cause != Cause::none)
        commands[follower.id].cause = cause;
    }
  Empty(command.followers);
  Empty(command.after);
  Empty(command.work.after);
  Empty(command.dependents);
  Empty(command.uses);
  Empty(command.work.buffers);
  Empty(command.work.extents);
  free_commands.push_back(id);
}

bool Graph::AnyReady() const {
  return Front(compute) || Front(optimizer) || !fills.empty() || !transfers.empty();
}

/// Reads: when what they bring is used. Writes: what the step itself reads again
/// (activations), then what the next one begins with (weights), then the rest, each in
/// the order of becoming ready.
int64_t Graph::Priority(const Command &command) const {
  if (command.work.kind == Kind::read)
    return command.first_use ? command.first_use : command.sequence;
  const Storage &storage = program.storages[command.work.storage];
  return !storage.persistent ? 0 : storage.role == "weights" ? 1 : 2;
}

Work *Graph::GiveOut(uint32_t id) {
  Command &command = commands[id];
  Work &work = command.work;
  work.buffers.clear();
  for (const Use &use : command.uses)
    work.buffers.push_back(use.buffer ? At(buffers[use.buffer], use.first) : Location());
  if (work.IsTransfer())
    work.priority = Priority(command);
  work.sequence = command.sequence;
  for (Reference before : command.after)
    if (!IsOver(before))
      work.after.push_back(commands[before.id].sequence);
  command.given = true;
  ++under_way;
  for (Reference follower : command.followers)
    Satisfy(follower.id, Cause::none);
  return &work;
}

void Graph::TakeReady(std::vector<Work *> &out, bool driver_waits) {
  if (!error.ok())
    return;
  // What is given out may let others be.
  do {
    for (std::deque<uint32_t> *queue : {&compute, &optimizer})
      for (; Front(*queue); queue->pop_front())
        out.push_back(GiveOut(queue->front()));
    for (size_t i = 0; i < fills.size(); ++i)
      out.push_back(GiveOut(fills[i]));
    fills.clear();
  } while (Front(compute));
  size_t held = 0;
  for (uint32_t id : transfers) {
    const Command &command = commands[id];
    if (issuing && !driver_waits && command.work.kind == Kind::read && command.first_use == 0)
      transfers[held++] = id;
    else
      out.push_back(GiveOut(id));
  }
  transfers.resize(held);
}

/// What it took, and what compute waited for before it.
void Graph::Count(const Work &work, const Command &command, int64_t begin_ns, int64_t end_ns) {
  if (work.run == kNoRun)
    return;
  Counters &counted = counters[work.run];
  const double seconds = double(end_ns - begin_ns) * 1e-9;
  if (work.kind == Kind::kernel) {
    counted.compute_seconds += seconds;
    counted.flops += program.kernels[work.index].flops;
    counted.launches += work.launches;
    counted.launch_calls += work.launch_calls;
    const int64_t from = std::max(compute_free_ns, runs[work.run].begin_ns);
    const double waited = double(std::min(begin_ns, command.ready_ns) - from) * 1e-9;
    const int64_t late_ns = begin_ns - std::max(from, command.ready_ns);
    counted.waited_launch += double(std::max<int64_t>(late_ns, 0)) * 1e-9;
    compute_free_ns = end_ns;
    if (waited <= 0)
      return;
    if (command.cause == Cause::read)
      counted.waited_read += waited;
    else if (command.cause == Cause::write)
      counted.waited_write += waited;
    else if (command.cause == Cause::copy)
      counted.waited_copy += waited;
    else if (command.cause == Cause::optimizer)
      counted.waited_optimizer += waited;
  } else if (Separate() && (work.ToDevice() || work.ToHost())) {
    if (work.kind == Kind::copy && work.buffers[0].space != work.buffers[1].space) {
      auto &bytes = work.ToDevice() ? counted.moved.to_device : counted.moved.to_host;
      bytes[program.storages[work.storage].role] += work.bytes;
    }
  } else if (!work.IsTransfer()) {
    counted.optimizer_seconds += seconds;
  }
}

void Graph::Complete(const Work &work, int64_t begin_ns, int64_t end_ns) {
  Command &command = commands[work.id];
  --under_way;
  now_ns = std::max(now_ns, end_ns);
  Count(work, command, begin_ns, end_ns);
  Cause cause = command.cause; // zeros and copies pass on what they waited for
  if (work.kind == Kind::kernel)
    cause = Cause::compute;
  else if (work.kind == Kind::read)
    cause = Cause::read;
  else if (work.kind == Kind::write)
    cause = Cause::write;
  else if (SameQueue(work.kind, Kind::update))
    cause = Cause::optimizer;
  else if (work.kind == Kind::copy && work.buffers[0].space != work.buffers[1].space)
    cause = Cause::copy;
  Finish(work.id, cause);
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

int64_t Graph::BeginRun(int64_t now) {
  now_ns = std::max(now_ns, now);
  issuing = true;
  Run &fresh = runs[++run];
  fresh.begin_ns = fresh.end_ns = now;
  return run;
}

bool Graph::IsDone(int64_t which, double share) {
  constexpr size_t kEnds = 64;
  while (!runs.empty() && runs.begin()->first <= which && runs.begin()->second.IsOver() &&
         !(issuing && runs.begin()->first == run)) {
    ends[runs.begin()->first] = runs.begin()->second.end_ns;
    runs.erase(runs.begin());
    if (ends.size() > kEnds)
      ends.erase(ends.begin());
  }
  if (runs.empty() || runs.begin()->first > which)
    return true;
  const auto &[oldest, of] = *runs.begin();
  return oldest == which && double(of.kernels_left) <= share * double(of.kernels) && share > 0;
}

int64_t Graph::EndOf(int64_t which) const {
  auto found = ends.find(which);
  return found == ends.end() ? now_ns : found->second;
}

Counters Graph::TakeCounters(int64_t of) {
  Counters taken;
  for (; !counters.empty() && counters.begin()->first <= of; counters.erase(counters.begin()))
    taken.Add(counters.begin()->second);
  return taken;
}

void Counters::Add(const Counters &other) {
  moved.Add(other.moved);
  compute_seconds += other.compute_seconds;
  flops += other.flops;
  launches += other.launches;
  launch_calls += other.launch_calls;
  optimizer_seconds += other.optimizer_seconds;
  waited_read += other.waited_read;
  waited_write += other.waited_write;
  waited_copy += other.waited_copy;
  waited_optimizer += other.waited_optimizer;
  waited_launch += other.waited_launch;
}

void Graph::Fail(absl::Status status) {
  if (!error.ok())
    return;
  error = std::move(status);
  compute.clear();
  optimizer.clear();
  fills.clear();
  transfers.clear();
}

/// What compiled code must keep to; if it does not, that is a compiler's error and
/// nothing more is run.
bool Graph::Expect(bool holds, const char *what) {
  if (!holds)
    Fail(absl::InternalError(absl::StrCat("the program ", what)));
  return holds;
}

} // namespace boa
