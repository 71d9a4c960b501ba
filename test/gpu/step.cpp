//===- step.cpp -----------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/step.h"

#include "runtime/abi/cuda_calls.h"
#include "runtime/weights/initial_values.h"
#include "test/gradients/Values.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

using namespace boa;
using namespace boa::gputest;

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// What an entry point is called with in place of an engine.
struct boa_context {
  std::vector<Piece> buffers{Piece()}; // by what the program knows them as; 0 is none
  std::vector<KernelRun> runs;

  boa_buffer Open(int32_t storage, int64_t entry, int32_t first) {
    if (entry < 0)
      return 0;
    buffers.push_back({storage, entry, first});
    return boa_buffer(buffers.size()) - 1;
  }
};

// The ABI of programs (runtime/abi/abi.h). Each buffer is its home, so nothing moves.
boa_buffer boa_rt_prefetch(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                           int32_t, int32_t, int32_t) {
  return context->Open(storage, entry, first);
}
boa_buffer boa_rt_create(boa_context *context, int32_t storage, int64_t entry, int32_t first,
                         int32_t, int32_t) {
  return context->Open(storage, entry, first);
}
void boa_rt_launch(boa_context *context, int32_t kernel, int32_t count, const boa_buffer *buffers) {
  KernelRun run{kernel, {}};
  for (int32_t i = 0; i < count; ++i)
    run.pieces.push_back(context->buffers[buffers[i]]);
  context->runs.push_back(std::move(run));
}
void boa_rt_copy(boa_context *, boa_buffer, boa_buffer, int32_t, int32_t) {}
void boa_rt_offload(boa_context *, boa_buffer, int32_t, int64_t, int32_t, int32_t) {}
void boa_rt_release(boa_context *, boa_buffer, int32_t) {}
void boa_rt_update(boa_context *, int32_t, int32_t, int64_t, boa_buffer, boa_buffer, boa_buffer,
                   int32_t, const boa_buffer *) {}
void boa_rt_norm(boa_context *, int32_t, boa_buffer) {}
void boa_rt_norm_done(boa_context *, int64_t) {}

/// Programs look for them here.
[[gnu::used]] static const void *const kCalled[] = {
    reinterpret_cast<const void *>(&boa_rt_prefetch),
    reinterpret_cast<const void *>(&boa_rt_create),
    reinterpret_cast<const void *>(&boa_rt_launch),
    reinterpret_cast<const void *>(&boa_rt_copy),
    reinterpret_cast<const void *>(&boa_rt_offload),
    reinterpret_cast<const void *>(&boa_rt_release),
    reinterpret_cast<const void *>(&boa_rt_update),
    reinterpret_cast<const void *>(&boa_rt_norm),
    reinterpret_cast<const void *>(&boa_rt_norm_done),
};

namespace boa::gputest {

absl::StatusOr<std::unique_ptr<PackedProgram>> PackedProgram::Load(const std::string &file) {
  // What stands behind the shared object is nothing to the loader.
  void *const library = dlopen(file.c_str(), RTLD_NOW);
  if (!library)
    return absl::NotFoundError(dlerror());
  auto *const json = static_cast<const char *>(dlsym(library, "boa_program"));
  auto packed = std::make_unique<PackedProgram>();
  packed->table = static_cast<const boa_kernel *>(dlsym(library, "boa_kernel_table"));
  packed->optimizer = static_cast<const boa_optimizer *>(dlsym(library, "boa_optimizer"));
  packed->image = static_cast<const boa_device_image *>(dlsym(library, "boa_device_image"));
  packed->function_bytes = static_cast<const int64_t *>(dlsym(library, "boa_device_bytes"));
  auto step = reinterpret_cast<boa_entry_point>(dlsym(library, "boa_step"));
  if (!json || !packed->table || !packed->image || !step)
    return absl::InvalidArgumentError(absl::StrCat(file, " is no program for a GPU"));
  auto program = ParseProgram(json);
  if (!program.ok())
    return program.status();
  packed->program = *std::move(program);
  boa_context context;
  step(&context, 1, 0);
  packed->runs = std::move(context.runs);
  return packed;
}

//===----------------------------------------------------------------------===//
// Its memory
//===----------------------------------------------------------------------===//

absl::StatusOr<std::unique_ptr<Step>> Step::Open(const Session &session, const std::string &file) {
  auto packed = PackedProgram::Load(file);
  if (!packed.ok())
    return packed.status();
  std::unique_ptr<Step> step(new Step(session));
  step->packed = *std::move(packed);
  auto gpu = cuda::Gpu::Open();
  if (!gpu.ok())
    return gpu.status();
  step->gpu = *std::move(gpu);
  if (absl::Status status = step->gpu->Load(*step->packed->image); !status.ok())
    return status;
  step->queue.gpu = step->gpu.get();
  step->queue.driver = &step->gpu->driver();
  step->queue.stream = session.stream();
  step->tables = std::make_unique<cuda::GpuTables>(*step->gpu);
  if (absl::Status status = step->tables->Create(step->packed->program.tables, session.stream());
      !status.ok())
    return status;
  if (absl::Status status = step->Fill(); !status.ok())
    return status;
  return step;
}

absl::Status Step::Fill() {
  const Program &program = packed->program;
  int64_t most = 0, bytes = 0;
  for (const KernelRun &run : packed->runs) {
    most = std::max(most, KernelOf(run).workspace);
    for (const Piece &piece : run.pieces)
      memory[{piece.storage, piece.entry}];
  }
  for (auto &[key, place] : memory)
    bytes += program.storages[key.first].bytes;
  absl::Status status = gpu->CheckFree(bytes + most);
  workspace = std::make_unique<DeviceMemory>(session);
  if (status.ok())
    status = workspace->Allocate(size_t(std::max<int64_t>(most, 1)));
  for (auto &[key, place] : memory) {
    const Storage &storage = program.storages[key.first];
    place = std::make_unique<DeviceMemory>(session);
    if (status.ok())
      status = place->Allocate(size_t(storage.bytes));
    if (status.ok())
      status = place->Clear(size_t(storage.bytes));
    // Without documents, a sequence is one that begins at 0, as memory is cleared.
    const bool indices = storage.role == "tokens" || storage.role == "targets";
    if (!status.ok() || (!indices && storage.role != "loss_gradients"))
      continue;
    std::vector<int32_t> data(size_t(storage.bytes) / sizeof(int32_t));
    const float share = 1 / float(program.MicroBatches());
    for (size_t i = 0; i < data.size(); ++i)
      if (indices)
        data[i] = int32_t(i * 2654435761u % uint32_t(program.model.vocab));
      else
        std::memcpy(&data[i], &share, sizeof(share));
    status = place->Put(0, data.data(), data.size() * sizeof(int32_t));
    if (status.ok())
      status = session.Wait();
  }
  for (size_t g = 0; g < program.groups.size() && status.ok(); ++g) {
    const Group &group = program.groups[g];
    const bool narrow = group.weight_type == "bf16";
    for (size_t p = 0; p < group.parameters.size() && status.ok(); ++p) {
      const Parameter &parameter = group.parameters[p];
      // A part is initialised, which repeats: numbers like those of a model.
      const int64_t elements = parameter.elements(), count = std::min<int64_t>(elements, 1 << 20);
      const size_t each = narrow ? 2 : 4;
      std::vector<float> values(static_cast<size_t>(count));
      InitialValues(program, int64_t(g), 0, int64_t(p), 0, count, values.data());
      std::vector<char> some(size_t(count) * each);
      for (int64_t i = 0; i < count; ++i) {
        const uint16_t high = testing::toBfloat(values[size_t(i)]);
        std::memcpy(&some[size_t(i) * each],
                    narrow ? static_cast<const void *>(&high) : &values[size_t(i)], each);
      }
      for (auto &[key, place] : memory)
        for (int64_t at = 0; key.first == group.weights && at < elements && status.ok();
             at += count)
          status = place->Put(size_t(parameter.offset + at) * each, some.data(),
                              size_t(std::min(count, elements - at)) * each);
      if (status.ok())
        status = session.Wait();
    }
  }
  return status;
}

char *Step::Address(const Piece &piece) const {
  const Storage &storage = packed->program.storages[piece.storage];
  return memory.at({piece.storage, piece.entry})->at(size_t(piece.first * storage.chunk_bytes()));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {
struct Recorder : cuda::CallListener {
  std::vector<Call> calls;
  const std::vector<bool> *library = nullptr;
  std::function<bool(const cuda::Attention &)> ask;
  size_t offers = 0;

  void Launch(const cuda::LaunchCall &launch) override { calls.push_back(launch); }
  void Multiply(const cuda::Product &product) override { calls.push_back(product); }
  bool Attend(const cuda::Attention &attention) override {
    const size_t offer = offers++;
    const bool taken = library ? offer < library->size() && (*library)[offer] : ask(attention);
    if (taken)
      calls.push_back(attention);
    return taken;
  }
};
} // namespace

std::vector<Call> Step::Record(const KernelRun &run, const std::vector<bool> *library) {
  std::vector<void *> buffers;
  for (const Piece &piece : run.pieces)
    buffers.push_back(Address(piece));
  for (int64_t table : KernelOf(run).tables)
    buffers.push_back(tables->Address(table));
  Recorder recorder;
  recorder.library = library;
  recorder.ask = [&](const cuda::Attention &attention) {
    if (!Prepare(attention).ok())
      return false;
    const absl::StatusOr<bool> taken = queue.dnn->Takes(attention);
    return taken.ok() && *taken;
  };
  queue.listener = &recorder;
  packed->table[run.kernel](buffers.data(), workspace->at(0), &queue);
  queue.listener = nullptr;
  return std::move(recorder.calls);
}

absl::Status Step::OpenBlas() {
  if (queue.blas || !no_blas.ok())
    return no_blas;
  auto opened = cuda::Blas::Open(queue.driver->version());
  no_blas = opened.status();
  if (opened.ok())
    queue.blas = *std::move(opened);
  return no_blas;
}

/// As a kernel would, by the runtime's own call.
static absl::Status Launch(boa_queue &queue, const cuda::LaunchCall &launch, bool plans) {
  queue.plans = plans;
  boa_cuda_launch(&queue, launch.function, launch.grid[0], launch.grid[1], launch.grid[2],
                  launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
                  int64_t(launch.arguments.size()), launch.arguments.data());
  return std::exchange(queue.status, absl::OkStatus());
}

absl::Status Step::Prepare(const Call &call) {
  if (auto *launch = std::get_if<cuda::LaunchCall>(&call))
    return Launch(queue, *launch, /*plans=*/true);
  if (auto *product = std::get_if<cuda::Product>(&call)) {
    absl::Status status = OpenBlas();
    return status.ok() ? queue.blas->Plan(*product) : status;
  }
  if (!queue.dnn)
    queue.dnn = std::make_unique<cuda::Dnn>();
  absl::Status status =
      queue.dnn->Plan(std::get<cuda::Attention>(call), gpu->capability(), queue.stream);
  return status.ok() ? TryAttention() : status;
}

absl::Status Step::TryAttention() {
  const int64_t bytes = queue.dnn->TrialBytes();
  if (bytes == 0)
    return absl::OkStatus();
  DeviceMemory trial(session);
  absl::Status status = trial.Allocate(size_t(bytes));
  if (status.ok())
    queue.dnn->Try(trial.at(0));
  return status.ok() ? session.Wait() : status;
}

absl::Status Step::Enqueue(const Call &call) {
  if (auto *launch = std::get_if<cuda::LaunchCall>(&call))
    return Launch(queue, *launch, /*plans=*/false);
  if (auto *product = std::get_if<cuda::Product>(&call))
    return queue.blas->Enqueue(*product, queue.stream);
  return queue.dnn->Enqueue(std::get<cuda::Attention>(call));
}

std::string Step::Format(const Call &call) const {
  if (auto *launch = std::get_if<cuda::LaunchCall>(&call))
    return gpu->functions()[size_t(launch->function)].name;
  if (auto *attention = std::get_if<cuda::Attention>(&call))
    return cuda::Format(attention->shape);
  const auto &p = std::get<cuda::Product>(call);
  const char *const types[] = {"f32", "bf16", "tf32"};
  return absl::StrFormat("%c%c %d x %d x %d %s to %s, rows %d %d %d%s%s", p.transpose_a ? 'T' : 'N',
                         p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, types[p.type_ab],
                         types[p.type_c], p.lda, p.ldb, p.ldc, p.bias ? " + bias" : "",
                         p.addend == nullptr ? ""
                         : p.addend == p.c   ? " + c"
                                             : " + another");
}

double Step::Operations(const Call &call) {
  if (auto *p = std::get_if<cuda::Product>(&call))
    return 2.0 * double(p->m) * double(p->n) * double(p->k);
  if (auto *attention = std::get_if<cuda::Attention>(&call)) {
    const cuda::AttentionShape &s = attention->shape;
    // Two products forward, five of the gradient; where causal, half of each.
    return (s.gradient ? 5 : 2) * (s.causal ? 1.0 : 2.0) * double(s.batch * s.heads) *
           double(s.time) * double(s.time) * double(s.columns);
  }
  return 0;
}

double Step::Bytes(const Call &call) const {
  auto *launch = std::get_if<cuda::LaunchCall>(&call);
  return launch && packed->function_bytes ? double(packed->function_bytes[launch->function]) : 0;
}

} // namespace boa::gputest
