//===- kernel_bench.cpp - What a transformer block costs beside its GEMMs -===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles forward and backward of a GPT-2 block (backward computes the forward
// values again and accumulates all weight gradients) and times them. The code is
// bound to counting versions of the library calls, which say where the time
// went: matrix products, attention, generated loops. For comparison the same
// matrix products are timed alone.
//
//   kernel-bench [--cpu-time] [--bf16] [width heads context micro_batch]...
//   kernel-bench [--cpu-time] --products
//   kernel-bench [--cpu-time] --attention
//
// With --cpu-time one thread works and its processor time is counted, which
// holds on a machine that is busy with other things. With --bf16 weights are stored
// so, as a trainer stores them unless told otherwise. With --products the products
// of a training step alone are timed, with each instruction set that there is, in turns.
// It says which set is the fastest for each type, and ends with 1 if the table by which
// kernels are chosen (isa.cpp) names a slower one. With --attention attention alone is
// timed, in turns.
//
//===----------------------------------------------------------------------===//

#include "dialect/Boa.h"
#include "passes/kernels/EmitKernels.h"
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/cpu/Codegen.h"
#include "passes/target/Target.h"
#include "runtime/abi/abi.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/gemm.h"
#include "runtime/support/thread_pool.h"
#include "test/bench/kernel_bench.h"
#include "test/bench/kernel_bench_block.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

using namespace mlir;

bool bench::cpuTime = false;

double bench::now() {
  timespec time;
  clock_gettime(cpuTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

float *bench::allocate(int64_t bytes) {
  auto *memory = static_cast<float *>(
      std::aligned_alloc(4096, static_cast<size_t>((bytes + 4095) / 4096 * 4096)));
  for (int64_t i = 0; i < bytes / 4; ++i)
    memory[i] = static_cast<float>((i * 7919) % 1009) / 1009 * 0.1f - 0.05f;
  return memory;
}

using namespace bench;

namespace {

bool bf16 = false;

//===----------------------------------------------------------------------===//
// Counted library calls
//===----------------------------------------------------------------------===//

struct Product {
  int32_t ta, tb;
  int64_t m, n, k;
};
double gemmSeconds, attentionSeconds, loopSeconds, products;
std::vector<Product> calls;
std::map<void *, double> loops;

template <typename F> void timed(double &seconds, F &&function) {
  double start = now();
  function();
  seconds += now() - start;
}

template <typename B, typename Function>
void countGemm(Function function, int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k,
               const float *a, int64_t lda, const B *b, int64_t ldb, const float *bias,
               int32_t accumulate, float *c, int64_t ldc, void *prepared, int64_t offset) {
  calls.push_back({ta, tb, m, n, k});
  products += 2.0 * m * n * k;
  timed(gemmSeconds, [&] {
    function(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared, offset);
  });
}
void countedGemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a,
                 int64_t lda, const float *b, int64_t ldb, const float *bias, int32_t accumulate,
                 float *c, int64_t ldc, void *prepared, int64_t offset) {
  countGemm(boa_gemm_f32, ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared,
            offset);
}
void countedGemmNarrow(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a,
                       int64_t lda, const uint16_t *b, int64_t ldb, const float *bias,
                       int32_t accumulate, float *c, int64_t ldc, void *prepared, int64_t offset) {
  countGemm(boa_gemm_bf16, ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc, prepared,
            offset);
}
void countedAttention(int64_t batch, int64_t time, int64_t heads, int64_t kv, int64_t d,
                      int32_t causal, int64_t window, const int32_t *starts, const float *q,
                      int64_t ldq, const float *k, int64_t ldk, const float *v, int64_t ldv,
                      float *y, int64_t ldy, float *lse) {
  timed(attentionSeconds, [&] {
    boa_attention_f32(batch, time, heads, kv, d, causal, window, starts, q, ldq, k, ldk, v, ldv, y,
                      ldy, lse);
  });
}
void countedAttentionGrad(int64_t batch, int64_t time, int64_t heads, int64_t kv, int64_t d,
                          int32_t causal, int64_t window, const int32_t *starts, const float *q,
                          int64_t ldq, const float *k, int64_t ldk, const float *v, int64_t ldv,
                          const float *y, int64_t ldy, const float *lse, const float *dy,
                          int64_t lddy, float *dq, int64_t lddq, float *dk, int64_t lddk, float *dv,
                          int64_t lddv) {
  timed(attentionSeconds, [&] {
    boa_attention_grad_f32(batch, time, heads, kv, d, causal, window, starts, q, ldq, k, ldk, v,
                           ldv, y, ldy, lse, dy, lddy, dq, lddq, dk, lddk, dv, lddv);
  });
}
void countedLoop(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t), void *data) {
  double seconds = 0;
  timed(seconds, [&] { boa_rt_parallel_for(count, grain, body, data); });
  loopSeconds += seconds;
  loops[reinterpret_cast<void *>(body)] += seconds;
}

template <typename F> boa::HostSymbol symbol(const char *name, F *function) {
  return {name, reinterpret_cast<void *>(function)};
}
const boa::HostSymbol kSymbols[] = {
    symbol("boa_gemm_f32", countedGemm),
    symbol("boa_gemm_bf16", countedGemmNarrow),
    symbol("boa_attention_f32", countedAttention),
    symbol("boa_attention_grad_f32", countedAttentionGrad),
    symbol("boa_rt_parallel_for", countedLoop),
};

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

/// Products of `list`, each on its own operands, again and again.
double timeProducts(const std::vector<Product> &list) {
  int64_t largest = 0;
  for (const Product &p : list)
    largest = std::max({largest, p.m * p.k, p.k * p.n, p.m * p.n});
  float *a = allocate(largest * 4), *b = allocate(largest * 4), *c = allocate(largest * 4);
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    double start = now();
    for (const Product &p : list)
      boa_gemm_f32(p.ta, p.tb, p.m, p.n, p.k, a, p.ta ? p.m : p.k, b, p.tb ? p.k : p.n, nullptr, 0,
                   c, p.n, nullptr, 0);
    best = std::min(best, now() - start);
  }
  std::free(a), std::free(b), std::free(c);
  return best;
}

void measure(Shape s) {
  bench::Block block(s, bf16);
  DialectRegistry registry;
  registry.insert<boa::BoaDialect>();
  boa::registerKernelDialects(registry);
  MLIRContext context(registry);
  context.disableMultithreading();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(block.forward() + block.backward(), &context);
  double start = now();
  PassManager pm(&context);
  pm.enableVerifier(false);
  boa::Target::get({})->buildKernels(pm, {});
  if (!module || failed(pm.run(*module)))
    std::abort();
  const char *names[] = {"block_forward", "block_backward"};
  int64_t workspaces[2];
  size_t forms[2]; // the number of the prepared buffer, or of all buffers
  for (int i : {0, 1}) {
    auto kernel = module->lookupSymbol<boa::KernelOp>(names[i]);
    workspaces[i] = int64_t(kernel.getWorkspace());
    forms[i] = kernel.getBuffers().size() - (kernel.getPreparedAttr() ? 1 : 0);
  }
  boa::emitKernels(*module);
  if (const char *what = std::getenv("BOA_BENCH_PRINT"))
    llvm::errs() << llvm::cantFail(StringRef(what) == "llvm" ? boa::emitLLVMIR(*module)
                                                             : boa::emitAssembly(*module));
  double lowered = now();
  auto program = llvm::cantFail(boa::JitProgram::create(*module, kSymbols));
  std::printf("width %ld, %ld heads, context %ld, micro-batch %ld\n", s.width, s.heads, s.context,
              s.batch);
  boa_kernel kernels[2];
  for (int i : {0, 1})
    kernels[i] = llvm::cantFail(program->lookupAs<boa_kernel>(names[i]));
  std::printf("  compiled in %.0f ms (passes %.0f)\n", (now() - start) * 1e3,
              (lowered - start) * 1e3);

  int64_t activation = s.batch * s.context * s.width * 4;
  void *buffers[] = {allocate(activation), allocate(block.parameterBytes()), allocate(activation),
                     allocate(block.parameterBytes()), allocate(activation)};
  for (int i : {0, 1}) {
    void *workspace = allocate(workspaces[i]);
    // Products pack by themselves, as they do where memory is short of a form.
    std::vector<void *> addresses(buffers, buffers + forms[i]);
    addresses.push_back(nullptr);
    // The least of each part: other programs only add.
    double best = 1e9, gemm = 1e9, attention = 1e9, generated = 1e9, flops = 0;
    std::map<void *, double> each;
    for (int repeat = 0; repeat < 15; ++repeat) {
      gemmSeconds = attentionSeconds = loopSeconds = products = 0;
      calls.clear(), loops.clear();
      double begin = now();
      kernels[i](addresses.data(), workspace, nullptr);
      best = std::min(best, now() - begin);
      gemm = std::min(gemm, gemmSeconds);
      attention = std::min(attention, attentionSeconds);
      generated = std::min(generated, loopSeconds);
      flops = products;
      for (auto [body, seconds] : loops) {
        auto [it, added] = each.emplace(body, seconds);
        it->second = std::min(it->second, seconds);
      }
    }
    double alone = timeProducts(calls);
    std::printf("  %-14s %7.2f ms: products %.2f (%.0f GFLOP/s), attention %.2f, "
                "loops %.2f; workspace %.1f MB\n",
                names[i], best * 1e3, gemm * 1e3, flops / gemm / 1e9, attention * 1e3,
                generated * 1e3, workspaces[i] / 1e6);
    double rest = attention + generated;
    std::printf("  %-14s products alone %.2f ms; attention and loops are %.1f%% of the block\n", "",
                alone * 1e3, rest / (rest + gemm) * 100);
    if (std::getenv("BOA_BENCH_LOOPS"))
      for (auto [body, seconds] : each)
        std::printf("      loop %p %.3f ms\n", body, seconds * 1e3);
    std::free(workspace);
  }
  for (void *buffer : buffers)
    std::free(buffer);
}

} // namespace

int main(int argc, char **argv) {
  bool productsAlone = false, attentionAlone = false;
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; ++first) {
    if (std::string(argv[first]) == "--cpu-time") {
      cpuTime = true;
      boa::SetThreads(1);
    } else if (std::string(argv[first]) == "--bf16") {
      bf16 = true;
    } else if (std::string(argv[first]) == "--products") {
      productsAlone = true;
    } else if (std::string(argv[first]) == "--attention") {
      attentionAlone = true;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[first]);
      return 2;
    }
  }
  if (productsAlone)
    return measureProducts();
  if (attentionAlone) {
    measureAttention();
    return 0;
  }
  if (argc > first) {
    for (int i = first; i + 3 < argc; i += 4)
      measure({std::atol(argv[i]), std::atol(argv[i + 1]), std::atol(argv[i + 2]),
               std::atol(argv[i + 3])});
    return 0;
  }
  measure({768, 12, 256, 2});
  measure({768, 12, 256, 8});
  return 0;
}
