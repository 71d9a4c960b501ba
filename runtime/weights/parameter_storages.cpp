//===- parameter_storages.cpp - Parameters and storages -------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/weights/parameter_storages.h"

#include "runtime/abi/abi.h"
#include "runtime/abi/parts.h"
#include "runtime/kernels/master.h"
#include "runtime/weights/initial_values.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>

namespace boa {
namespace {

/// Memory that SSDs reach.
template <typename T> struct AlignedArray {
  explicit AlignedArray(int64_t count)
      : memory(static_cast<T *>(
            ::operator new(size_t(count) * sizeof(T), std::align_val_t(BOA_BLOCK_BYTES)))) {}
  T *data() const { return memory.get(); }
  struct Delete {
    void operator()(T *p) const { ::operator delete(p, std::align_val_t(BOA_BLOCK_BYTES)); }
  };
  std::unique_ptr<T, Delete> memory;
};

/// Chunks of one entry of a group while they go in or out.
struct Batch {
  Batch(const Group &group, int32_t most)
      : group(&group), master(group.chunk_elements * most), high(group.chunk_elements * most),
        low(group.chunk_elements * most) {}
  int64_t elements() const { return count * group->chunk_elements; }

  const Group *group;
  int64_t entry = 0;
  int32_t first = 0, count = 0; // chunks
  AlignedArray<float> master;
  AlignedArray<uint16_t> high;
  AlignedArray<int16_t> low;
};

/// A part of a parameter that lies in a batch.
struct Piece {
  int64_t first = 0, count = 0; // elements of the parameter
  int64_t at = 0;               // where it begins in the batch
};

Piece Intersect(const Batch &batch, const Parameter &parameter) {
  const int64_t batch_begin = batch.first * batch.group->chunk_elements;
  const int64_t begin = std::max(parameter.offset, batch_begin);
  const int64_t end =
      std::min(parameter.offset + parameter.elements(), batch_begin + batch.elements());
  return {begin - parameter.offset, std::max<int64_t>(end - begin, 0), begin - batch_begin};
}

/// Takes the batch until the engine is drained.
void WriteMaster(Engine &engine, const Batch &batch) {
  const Group &group = *batch.group;
  if (group.weight_type == "f32")
    return engine.WriteChunks(group.weights, batch.entry, batch.first, batch.count,
                              batch.master.data());
  for (int64_t i = 0; i < batch.elements(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, batch.master.data() + i, 4);
    batch.high.data()[i] = MasterHigh(bits);
    batch.low.data()[i] = MasterLow(bits);
  }
  engine.WriteChunks(group.weights, batch.entry, batch.first, batch.count, batch.high.data());
  // A program that only predicts has no master weights, nor has a frozen group.
  if (group.low >= 0)
    engine.WriteChunks(group.low, batch.entry, batch.first, batch.count, batch.low.data());
}

void JoinHalves(const Batch &batch) {
  for (int64_t i = 0; i < batch.elements(); ++i) {
    const uint32_t bits = JoinMaster(batch.high.data()[i], batch.low.data()[i]);
    std::memcpy(batch.master.data() + i, &bits, 4);
  }
}

/// Takes the batch until the engine is drained.
void ReadMaster(Engine &engine, const Batch &batch) {
  const Group &group = *batch.group;
  if (group.weight_type == "f32")
    return engine.ReadChunks(group.weights, batch.entry, batch.first, batch.count,
                             batch.master.data());
  engine.ReadChunks(group.weights, batch.entry, batch.first, batch.count, batch.high.data());
  if (group.low >= 0)
    engine.ReadChunks(group.low, batch.entry, batch.first, batch.count, batch.low.data());
  else
    std::fill_n(batch.low.data(), batch.elements(), int16_t{0});
}

/// So many chunks of a group keep all paths busy for a while. A small group has fewer.
int32_t BatchChunks(const Program &program, const Group &group) {
  constexpr int64_t kBytesOfPath = 2 << 20;
  const int64_t bytes = kBytesOfPath * std::max<int64_t>(1, int64_t(program.machine.ssd.size()));
  return int32_t(std::clamp<int64_t>(bytes / (4 * group.chunk_elements), 1, group.chunks));
}

/// Waits until the engine has left the batches, also where std::bad_alloc passes by. Declared
/// behind them.
class Landing {
public:
  explicit Landing(Engine &engine) : engine(engine) {}
  ~Landing() { engine.Drain().IgnoreError(); }
  Landing(const Landing &) = delete;
  Landing &operator=(const Landing &) = delete;

private:
  Engine &engine;
};

/// All chunks of a group, in order, in batches: what `move` begins to move of one goes on
/// while `after` takes the one before it, and `before` fills the next.
absl::Status ForEachBatch(const Program &program, const Group &group, Engine &engine,
                          const std::function<absl::Status(const Batch &)> &before,
                          const std::function<void(const Batch &)> &move,
                          const std::function<absl::Status(const Batch &)> &after) {
  const int32_t most = BatchChunks(program, group);
  Batch batches[2] = {{group, most}, {group, most}};
  const Landing landing(engine);
  Batch *moving = nullptr;
  absl::Status status;
  auto land = [&] { // until then the batch is the engine's, also after an error
    absl::Status landed = engine.Drain();
    if (status.ok())
      status = landed;
  };
  for (int64_t entry = 0; entry < group.count && status.ok(); ++entry)
    for (int32_t first = 0; first < group.chunks && status.ok(); first += most) {
      Batch &batch = batches[moving == &batches[0]];
      batch.entry = entry;
      batch.first = first;
      batch.count = std::min(most, group.chunks - first);
      if (before)
        status = before(batch);
      land();
      if (!status.ok())
        break;
      move(batch);
      if (moving && after)
        status = after(*moving);
      moving = &batch;
    }
  land();
  return status.ok() && moving && after ? after(*moving) : status;
}

/// Calls `fill` for the pieces of the group's parameters in a batch, and puts zeros between
/// parameters and behind the last one. Elements have `size` bytes.
absl::Status FillBatch(const Batch &batch, int64_t size,
                       const std::function<absl::Status(size_t p, const Piece &, char *)> &fill) {
  auto *bytes = reinterpret_cast<char *>(batch.master.data());
  std::memset(bytes, 0, size_t(batch.elements() * size));
  absl::Status status;
  for (size_t p = 0; p < batch.group->parameters.size() && status.ok(); ++p)
    if (const Piece piece = Intersect(batch, batch.group->parameters[p]); piece.count > 0)
      status = fill(p, piece, bytes + piece.at * size);
  return status;
}

/// Reads the whole of parameters in parts. Columns of parts alternate, so a chunk of each is held.
class WholeReader {
public:
  WholeReader(const Group &group, Engine &engine) : group(group), engine(engine) {}

  /// Calls `append(values, count)` with all elements of a parameter, in order.
  template <typename Append> absl::Status Read(const Parameter &parameter, Append append) {
    const Parts parts(group, parameter);
    auto of_part = [&](int64_t entry, int64_t first, int64_t count) {
      for (int64_t at = parameter.offset + first, end = at + count, next; at < end; at = next) {
        const int64_t chunk = at / group.chunk_elements;
        next = std::min(end, (chunk + 1) * group.chunk_elements);
        absl::StatusOr<const Batch *> batch =
            Hold(parameter.split > 0 ? entry : 0, entry, int32_t(chunk));
        absl::Status status = batch.status();
        if (status.ok())
          status = append((*batch)->master.data() + at % group.chunk_elements, next - at);
        if (!status.ok())
          return status;
      }
      return absl::OkStatus();
    };
    return parts.ForEachOfWhole(0, 0, CountElements(parts.WholeShape()), of_part);
  }

private:
  absl::StatusOr<const Batch *> Hold(int64_t lane, int64_t entry, int32_t chunk) {
    std::unique_ptr<Batch> &batch = held[lane];
    if (batch && batch->entry == entry && batch->first == chunk)
      return batch.get();
    if (!batch)
      batch = std::make_unique<Batch>(group, 1);
    batch->entry = entry;
    batch->first = chunk;
    batch->count = 1;
    const Landing landing(engine);
    ReadMaster(engine, *batch);
    if (absl::Status status = engine.Drain(); !status.ok())
      return status;
    if (group.weight_type != "f32")
      JoinHalves(*batch);
    return batch.get();
  }

  const Group &group;
  Engine &engine;
  std::map<int64_t, std::unique_ptr<Batch>> held;
};

} // namespace

absl::Status FillGroup(const Program &program, int64_t g, Engine &engine,
                       const ParameterSource &source) {
  auto fill = [&](const Batch &batch) {
    return FillBatch(batch, 4, [&](size_t p, const Piece &piece, char *to) {
      return source(g, batch.entry, int64_t(p), piece.first, piece.count,
                    reinterpret_cast<float *>(to));
    });
  };
  auto write = [&](const Batch &batch) { WriteMaster(engine, batch); };
  return ForEachBatch(program, program.groups[size_t(g)], engine, fill, write, nullptr);
}

absl::Status FillState(const Program &program, int64_t g, size_t state, Engine &engine,
                       const StateSource &source) {
  const Group &group = program.groups[size_t(g)];
  const int64_t size = StateBytes(program.optimizer.states[state].type, 1);
  auto fill = [&](const Batch &batch) {
    return FillBatch(batch, size, [&](size_t p, const Piece &piece, char *to) {
      return source(batch.entry, group.parameters[p], piece.first, piece.count, to);
    });
  };
  auto write = [&](const Batch &batch) {
    engine.WriteChunks(int32_t(group.states[state]), batch.entry, batch.first, batch.count,
                       batch.master.data());
  };
  return ForEachBatch(program, group, engine, fill, write, nullptr);
}

absl::Status FillParameters(const Program &program, Engine &engine, const ParameterSource &source) {
  for (size_t g = 0; g < program.groups.size(); ++g)
    if (absl::Status status = FillGroup(program, g, engine, source); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status InitializeParameters(const Program &program, Engine &engine) {
  return FillParameters(program, engine,
                        [&](int64_t group, int64_t entry, int64_t parameter, int64_t first,
                            int64_t count, float *values) {
                          auto part = [&](int64_t begin, int64_t end) {
                            InitialValues(program, group, entry, parameter, first + begin,
                                          end - begin, values + begin);
                          };
                          boa_rt_parallel_for(
                              count, /*grain=*/4096,
                              [](void *data, int64_t begin, int64_t end) {
                                (*static_cast<decltype(part) *>(data))(begin, end);
                              },
                              &part);
                          return absl::OkStatus();
                        });
}

absl::Status ReadParameters(const Program &program, Engine &engine, const ParameterSink &sink) {
  // Parameters are in order of offset in their group, so chunks in order give
  // the elements in the order of the file.
  auto read = [&](const Batch &batch) { ReadMaster(engine, batch); };
  auto append = [&](const Batch &batch) {
    if (batch.group->weight_type != "f32")
      JoinHalves(batch);
    absl::Status status;
    for (const Parameter &parameter : batch.group->parameters)
      if (const Piece piece = Intersect(batch, parameter); piece.count > 0 && status.ok())
        status = sink(batch.master.data() + piece.at, piece.count);
    return status;
  };
  for (const Group &group : program.groups) {
    absl::Status status;
    if (!IsOfParts(group))
      status = ForEachBatch(program, group, engine, nullptr, read, append);
    WholeReader reader(group, engine);
    for (size_t p = 0; IsOfParts(group) && p < group.parameters.size() && status.ok(); ++p)
      status = reader.Read(group.parameters[p], sink);
    if (!status.ok())
      return status;
  }
  return absl::OkStatus();
}

} // namespace boa
