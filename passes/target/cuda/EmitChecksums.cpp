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

/// Emits the function sums_BYTES.
class ChecksumEmitter {
public:
  ChecksumEmitter(gpu::GPUModuleOp device, int64_t bytes)
      : bytes(bytes), blocks(bytes / kChecksumBlock), threads(SumThreads(bytes)),
        b(OpBuilder::atBlockEnd(device.getBody()), device.getLoc()), i64(b.getI64Type()) {
    // Chunks may be fewer than the type says: what is behind them is others' memory.
    auto words = [&](int64_t count) {
      return DeviceArgument{MemRefType::get({count}, i64), kMemoryAlignment, /*isApart=*/false};
    };
    func = createDeviceFunction(
        b, b.loc, kSumPrefix + Twine(bytes),
        {words(kSumChunks * bytes / kWord), words(kChecksumKeys),
         words(kSumChunks * kChecksumLanes)},
        {getWorkgroupType({2 * threads}, i64), getWorkgroupType({kChecksumLanes}, i64)},
        /*grid=*/{}, {threads, 1, 1});
    b.setInsertionPointToStart(&func.getBody().front());
  }

  void emit() {
    Value block = b.make<gpu::BlockIdOp>(gpu::Dimension::x);
    Value thread = b.make<gpu::ThreadIdOp>(gpu::Dimension::x);
    Value lane = b.rem(thread, kChecksumLanes), which = b.div(thread, kChecksumLanes);
    Value carries = b.isLess(thread, kChecksumLanes);
    Value chunk = b.mul(block, bytes / kWord), keys = argument(1);
    Value parts = func.getWorkgroupAttributions()[0], lanes = func.getWorkgroupAttributions()[1];
    auto key = [&](int64_t first) { return b.load(keys, b.add(lane, first)); };
    b.when(carries, [&] { b.store(key(kFirstLanes), lanes, lane); });
    // Parts of two rounds: one is made while the other is used.
    const int64_t round = threads / kChecksumLanes;
    b.loop(b.index(0), b.index(blocks), round, {b.index(0)}, [&](Value at, Values &next) {
      // Behind the last, the last again.
      Value number = b.least(b.add(at, which), blocks - 1);
      Value made = next[0];
      b.store(part(chunk, number, lane), parts, b.add(made, thread));
      b.barrier();
      b.when(carries, [&] {
        Value left = b.make<arith::SubIOp>(b.index(blocks), at);
        Value sum = b.loop(b.index(0), b.least(left, round), 1, {b.load(lanes, lane)},
                           [&](Value i, Values &carried) {
                             Value from = b.add(b.add(made, b.mul(i, kChecksumLanes)), lane);
                             Value sum = add(carried[0], b.load(parts, from));
                             carried[0] =
                                 b.select(isLast(b.add(at, i)), sum, mix(sum, key(kMixKeys)));
                           })[0];
        b.store(sum, lanes, lane);
      });
      next[0] = b.make<arith::SubIOp>(b.index(threads), made);
    });
    b.when(carries, [&] {
      Value to = b.add(b.mul(block, kChecksumLanes), lane);
      b.store(b.load(lanes, lane), argument(2), to);
    });
    gpu::ReturnOp::create(b, b.loc);
  }

private:
  using Values = ThreadBuilder::Values;

  Value argument(unsigned i) { return func.getArgument(i); }
  Value word(uint64_t value) {
    return b.make<arith::ConstantOp>(b.getI64IntegerAttr(int64_t(value)));
  }
  Value add(Value x, Value y) { return b.make<arith::AddIOp>(x, y); }
  Value exclusive(Value x, Value y) { return b.make<arith::XOrIOp>(x, y); }
  Value shifted(Value x, int64_t by) { return b.make<arith::ShRUIOp>(x, word(by)); }
  Value isLast(Value number) {
    return b.compare(arith::CmpIPredicate::eq, number, b.index(blocks - 1));
  }

  /// The part that a block of the chunk adds to a lane. All of it is read, then all is computed.
  Value part(Value chunk, Value number, Value lane) {
    Value first = b.add(chunk, b.mul(number, kChecksumBlock / kWord));
    Value other = exclusive(lane, b.index(1)), last = isLast(number);
    SmallVector<std::array<Value, 3>> all; // the lane's word, the other's, the key
    for (int64_t stripe = 0; stripe < kChecksumStripes; ++stripe) {
      Value at = b.add(first, stripe * kChecksumLanes), key = b.add(lane, stripe);
      if (stripe == kChecksumStripes - 1)
        key = b.select(last, b.add(lane, kLastKeys), key);
      all.push_back({b.load(argument(0), b.add(at, lane)), b.load(argument(0), b.add(at, other)),
                     b.load(argument(1), key)});
    }
    Value sum = word(0);
    for (auto [own, across, key] : all) {
      Value keyed = exclusive(own, key);
      Value low = b.make<arith::AndIOp>(keyed, word(0xffffffff));
      Value product = b.make<arith::MulIOp>(low, shifted(keyed, 32));
      sum = add(sum, add(product, across));
    }
    return sum;
  }

  Value mix(Value sum, Value key) {
    Value mixed = exclusive(exclusive(sum, shifted(sum, 47)), key);
    return b.make<arith::MulIOp>(mixed, word(kChecksumPrime));
  }

  const int64_t bytes, blocks, threads;
  ThreadBuilder b;
  Type i64;
  gpu::GPUFuncOp func;
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
