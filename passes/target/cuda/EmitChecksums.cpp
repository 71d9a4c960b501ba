//===- EmitChecksums.cpp - Checksums as functions of the device -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes of a chunk's checksum (runtime/state/checksum.h) by the threads of a block. What
// its blocks add to the lanes is found by all threads, one lane of one block each; the lanes go
// from block to block in eight of them, while the others are at the next blocks. What the
// functions take is in runtime/abi/cuda_sums.h. Assumes the device's module, which
// --cuda-outline-launches makes.
//
//===----------------------------------------------------------------------===//

#include "dialect/Config.h"
#include "passes/kernels/MemoryAccess.h"
#include "passes/target/cuda/CudaPasses.h"
#include "passes/target/cuda/ThreadBuilder.h"
#include "runtime/abi/cuda_sums.h"

#include <set>

namespace boa {
#define GEN_PASS_DEF_CUDAEMITCHECKSUMS
#include "passes/target/cuda/CudaPasses.h.inc"
} // namespace boa

using namespace mlir;
using namespace boa;
using namespace boa::cuda;

namespace {

constexpr int64_t kWord = sizeof(uint64_t);

/// Chunks may be fewer than the type says: what is behind them is others' memory.
DeviceArgument wordsOf(Builder types, int64_t count) {
  return {MemRefType::get({count}, types.getI64Type()), kMemoryAlignment, /*isApart=*/false};
}

/// Emits the function sums_BYTES.
class ChecksumEmitter : FunctionBuilder {
public:
  ChecksumEmitter(gpu::GPUModuleOp device, int64_t bytes)
      : ChecksumEmitter(device, bytes, SumThreads(bytes), Builder(device.getContext())) {}

  void emit() {
    Value block = getBlockId(), thread = getThreadId();
    Value lane = rem(thread, kChecksumLanes), which = div(thread, kChecksumLanes);
    Value carries = isLess(thread, kChecksumLanes);
    Value chunk = mul(block, bytes / kWord), keys = argument(1);
    Value parts = shared(0), lanes = shared(1);
    auto key = [&](int64_t first) { return load(keys, add(lane, first)); };
    when(carries, [&] { store(key(kFirstLanes), lanes, lane); });
    // Parts of two rounds: one is made while the other is used.
    const int64_t round = threads / kChecksumLanes;
    loop(index(0), index(blocks), round, {index(0)}, [&](Value at, Values &next) {
      // Behind the last, the last again.
      Value number = least(add(at, which), blocks - 1);
      Value made = next[0];
      store(part(chunk, number, lane), parts, add(made, thread));
      barrier();
      when(carries, [&] {
        Value left = sub(index(blocks), at);
        auto addPart = [&](Value i, Values &carried) {
          Value from = add(add(made, mul(i, kChecksumLanes)), lane);
          Value sum = add(carried[0], load(parts, from));
          carried[0] = select(isLast(add(at, i)), sum, mix(sum, key(kMixKeys)));
        };
        Value sum = loop(index(0), least(left, round), 1, {load(lanes, lane)}, addPart)[0];
        store(sum, lanes, lane);
      });
      next[0] = sub(index(threads), made);
    });
    when(carries, [&] {
      Value to = add(mul(block, kChecksumLanes), lane);
      store(load(lanes, lane), argument(2), to);
    });
    finish();
  }

private:
  ChecksumEmitter(gpu::GPUModuleOp device, int64_t bytes, int64_t threads, Builder types)
      : FunctionBuilder(device, device.getLoc(), kSumPrefix + Twine(bytes),
                        {wordsOf(types, kSumChunks * bytes / kWord), wordsOf(types, kChecksumKeys),
                         wordsOf(types, kSumChunks * kChecksumLanes)},
                        {getWorkgroupType({2 * threads}, types.getI64Type()),
                         getWorkgroupType({kChecksumLanes}, types.getI64Type())},
                        /*grid=*/{}, threads),
        bytes(bytes), blocks(bytes / kChecksumBlock), threads(threads) {}

  Value isLast(Value number) { return compare(Predicate::eq, number, index(blocks - 1)); }

  /// The part that a block of the chunk adds to a lane. All of it is read, then all is computed.
  Value part(Value chunk, Value number, Value lane) {
    Value first = add(chunk, mul(number, kChecksumBlock / kWord));
    Value other = exclusive(lane, index(1)), last = isLast(number);
    SmallVector<std::array<Value, 3>> all; // the lane's word, the other's, the key
    for (int64_t stripe = 0; stripe < kChecksumStripes; ++stripe) {
      Value at = add(first, stripe * kChecksumLanes), key = add(lane, stripe);
      if (stripe == kChecksumStripes - 1)
        key = select(last, add(lane, kLastKeys), key);
      all.push_back({load(argument(0), add(at, lane)), load(argument(0), add(at, other)),
                     load(argument(1), key)});
    }
    Value sum = integer(0, 64);
    for (auto [own, across, key] : all) {
      Value keyed = exclusive(own, key);
      Value product = mul(both(keyed, 0xffffffff), shiftRight(keyed, 32));
      sum = add(sum, add(product, across));
    }
    return sum;
  }

  Value mix(Value sum, Value key) {
    Value mixed = exclusive(exclusive(sum, shiftRight(sum, 47)), key);
    return mul(mixed, int64_t(kChecksumPrime));
  }

  const int64_t bytes, blocks, threads;
};

struct CudaEmitChecksums : boa::impl::CudaEmitChecksumsBase<CudaEmitChecksums> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto device = module.lookupSymbol<gpu::GPUModuleOp>(kDeviceModule);
    if (!device || !Config(module).machine.direct)
      return;
    std::set<int64_t> sizes;
    for (auto storage : module.getOps<StorageOp>())
      if (storage.livesOn(Tier::ssd))
        sizes.insert(storage.getChunkBytes());
    for (int64_t bytes : sizes)
      ChecksumEmitter(device, bytes).emit();
  }
};

} // namespace
