//===- abi.h - What compiled code calls ---------------------------*- C -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C ABI between a compiled program and the runtime. A compiled program has
//
//   const char boa_program[]            its descriptor, JSON (runtime/abi/program.h)
//   void boa_step(ctx, step, pending)   one training step
//   void boa_drain(ctx, step, pending)  the delayed optimizer updates, nothing else
//   void boa_evaluate(ctx, step, 0)     forward passes of all micro-batches, no update
//   void boa_kernel_table[]             the kernels, in the order of the descriptor
//   boa_optimizer boa_optimizer         the optimizer, if the program trains (optimizer.h)
//
// It calls the functions of calls.def from one thread, the *driver*. Every call only enqueues a
// command. Compute, each direction of I/O and of copies, and the optimizer advance on their own. A
// command that needs a slot waits for a free one *in the engine*, not in the driver. Slots of a
// pool are granted in program order as releases complete. So the driver runs ahead of the device,
// and the number of slots bounds its lead. The driver is held up only while very many commands
// wait, and never if those need it to go on. No deadlock: every dependence points backward in
// program order, and a pool has at least as many slots as the program holds live at once.
//
// Model of memory. A *storage* is an array of equal entries (say, the weights of each layer). An
// entry is divided into equal chunks, the unit of the optimizer and of commit. A chunk has a
// *home*, where it lives between uses: device memory, host memory or SSD. Homes are given by
// ranges of entries, and of chunks in each of them. A *space* is a memory that kernels (device) or
// SSDs (host) can reach. The optimizer works in one of the two. A *buffer* is some chunks of one
// entry in a space: a slot, or the home itself.
//
// The machine's memory is *unified* (a CPU: one memory, in which a space says
// only whose share a buffer is counted in) or *separate*.
//
//   - Reads and writes order commands, chunk by chunk, for buffers and for homes. A reader
//     follows the last writer. A writer follows the last writer and its readers. Nothing else
//     orders commands.
//   - So prefetches and offloads of one chunk are coherent in program order. A prefetch after an
//     offload sees the offloaded contents.
//   - A buffer is valid from prefetch or create to release. It has its contents when a command
//     that takes it runs.
//   - A pool is the slots of one size of one storage in one space, or of several storages that
//     share them, in the size of the largest. A buffer that needs a slot
//     takes one of the smallest pool of its space that can hold it. If memory is unified and its
//     space has no such pool, it takes a slot of the other space.
//   - On separate memories kernels take device buffers. Updates and norms take buffers of the
//     space in which the descriptor has the optimizer run. Anything else is an error of the
//     program.
//   - An SSD reaches host memory alone. Each chunk on its way between SSD and device takes a slot
//     of the host's, in program order. If the descriptor says `direct`, SSDs also reach the
//     device's memory, and those chunks bypass the host.
//
// Errors are latched in the context. After the first one every call is a no-op that returns 0,
// and the step ends. The status is in runtime/engine/engine.h.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_ABI_ABI_H
#define BOA_RUNTIME_ABI_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BOA_ABI_VERSION 15

typedef struct boa_context boa_context;

/// Chunks in a space. 0 is the null buffer.
typedef int64_t boa_buffer;

/// Memories in which a buffer can be.
enum { BOA_DEVICE = 0, BOA_HOST = 1 };

// What the driver calls: boa_rt_prefetch and the like, each with its context first.
#define BOA_PARAMETERS(...) __VA_ARGS__
#define BOA_CALL(RESULT, NAME, PARAMETERS, DONE)                                                   \
  RESULT boa_rt_##NAME(boa_context *context, BOA_PARAMETERS PARAMETERS);
#include "runtime/abi/calls.def"

/// Data-parallel loop on the shared thread pool, called by generated kernels: body(data, begin,
/// end) over a static partition of [0, count). Parts are disjoint, so the result does not depend
/// on which thread runs which part. Blocks.
void boa_rt_parallel_for(int64_t count, int64_t grain,
                         void (*body)(void *data, int64_t begin, int64_t end), void *data);

/// A block. Offsets and sizes of all transfers, chunks, slots and extents are multiples of it.
#define BOA_BLOCK_BYTES INT64_C(4096)

/// Bytes from one slot of the arena to the next, for slots of `bytes`. They are whole blocks, and
/// no multiple of 64 KiB: arrays spaced by powers of two fall on the same cache sets. The
/// compiler uses this to compute the memory that the engine allocates.
static inline int64_t boa_slot_stride(int64_t bytes) {
  int64_t rounded = (bytes + BOA_BLOCK_BYTES - 1) / BOA_BLOCK_BYTES * BOA_BLOCK_BYTES;
  return rounded % 65536 == 0 ? rounded + BOA_BLOCK_BYTES : rounded;
}

/// Where a kernel of a device of its own enqueues its work.
typedef struct boa_queue boa_queue;

/// One kernel. `buffers` has the base addresses of its buffers, then those of its tables
/// (runtime/abi/tables.h). `workspace` is as large as the descriptor says, 256-byte aligned.
/// `queue` is null on a CPU. Called on the compute thread.
typedef void (*boa_kernel)(void *const *buffers, void *workspace, boa_queue *queue);

/// The global `boa_device_image` of a program for a device of its own; a program for a
/// CPU has none.
typedef struct {
  const void *module; // PTX text, its NUL included
  int64_t bytes;
  const char *const *functions; // names, in the order by which launches number them
  int64_t count;
} boa_device_image;

/// One entry point of the program.
typedef void (*boa_entry_point)(boa_context *, int64_t step, int64_t pending);

#ifdef __cplusplus
}
#endif

#endif // BOA_RUNTIME_ABI_ABI_H
