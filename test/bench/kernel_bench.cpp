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
#include "passes/kernels/KernelPasses.h"
#include "passes/kernels/KernelPipeline.h"
#include "passes/target/cpu/Codegen.h"
#include "passes/target/cpu/CpuPipeline.h"
#include "runtime/abi/abi.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/isa.h"
#include "runtime/support/thread_pool.h"

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

namespace {

bool cpuTime = false, bf16 = false, productsAlone = false, attentionAlone = false;

double now() {
  timespec time;
  clock_gettime(cpuTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

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
               int32_t accumulate, float *c, int64_t ldc) {
  calls.push_back({ta, tb, m, n, k});
  products += 2.0 * m * n * k;
  timed(gemmSeconds, [&] { function(ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc); });
}
void countedGemm(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a,
                 int64_t lda, const float *b, int64_t ldb, const float *bias, int32_t accumulate,
                 float *c, int64_t ldc) {
  countGemm(boa_gemm_f32, ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}
void countedGemmNarrow(int32_t ta, int32_t tb, int64_t m, int64_t n, int64_t k, const float *a,
                       int64_t lda, const uint16_t *b, int64_t ldb, const float *bias,
                       int32_t accumulate, float *c, int64_t ldc) {
  countGemm(boa_gemm_bf16, ta, tb, m, n, k, a, lda, b, ldb, bias, accumulate, c, ldc);
}
void countedAttention(int64_t batch, int64_t time, int64_t heads, int64_t kv, int64_t d,
                      int32_t causal, const float *q, int64_t ldq, const float *k, int64_t ldk,
                      const float *v, int64_t ldv, float *y, int64_t ldy, float *lse) {
  timed(attentionSeconds, [&] {
    boa_attention_f32(batch, time, heads, kv, d, causal, q, ldq, k, ldk, v, ldv, y, ldy, lse);
  });
}
void countedAttentionGrad(int64_t batch, int64_t time, int64_t heads, int64_t kv, int64_t d,
                          int32_t causal, const float *q, int64_t ldq, const float *k, int64_t ldk,
                          const float *v, int64_t ldv, const float *y, int64_t ldy,
                          const float *lse, const float *dy, int64_t lddy, float *dq, int64_t lddq,
                          float *dk, int64_t lddk, float *dv, int64_t lddv) {
  timed(attentionSeconds, [&] {
    boa_attention_grad_f32(batch, time, heads, kv, d, causal, q, ldq, k, ldk, v, ldv, y, ldy, lse,
                           dy, lddy, dq, lddq, dk, lddk, dv, lddv);
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
// The block
//===----------------------------------------------------------------------===//

struct Shape {
  int64_t width, heads, context, batch;
};

/// Text of @block_forward or @block_backward, with places in buffers:
/// 0 x, 1 parameters, 2 y (forward) or dy, 3 gradients, 4 dx.
class Block {
public:
  explicit Block(Shape s) : s(s) {
    int64_t w = s.width;
    add("ln1_w", {w}), add("ln1_b", {w});
    add("qkv_w", {w, 3 * w}), add("qkv_b", {3 * w});
    add("out_w", {w, w}), add("out_b", {w});
    add("ln2_w", {w}), add("ln2_b", {w});
    add("fc_w", {w, 4 * w}), add("fc_b", {4 * w});
    add("proj_w", {4 * w, w}), add("proj_b", {w});
    x = tensor({s.batch, s.context, w});
    qkv = tensor({s.batch, s.context, 3 * w});
    hidden = tensor({s.batch, s.context, 4 * w});
    lse = tensor({s.batch, s.heads, s.context});
  }

  int64_t parameterBytes() const { return bytes; }

  std::string forward() {
    text = "func.func @block_forward(%x: " + x + place(0, 0) + parameters() + ") -> (" + x +
           place(2, 0) + ") attributes {boa.kernel} {\n";
    body();
    linear("p", "g", hidden, "proj", x);
    op("out = boa.add %h, %p : " + x + ", " + x);
    return text + "  return %out : " + x + "\n}\n";
  }

  std::string backward() {
    text = "func.func @block_backward(%x: " + x + place(0, 0) + parameters() + ", %dy: " + x +
           place(2, 0);
    std::string results = x + place(4, 0), values = "%dx", types = x;
    for (size_t i = 0; i < all.size(); ++i) {
      const Parameter &p = all[i];
      text += ", %g_" + p.model.name + ": " + p.type +
              " {boa.buffer = 3 : i32, boa.offset = " + std::to_string(p.offset) +
              " : i64, boa.result = " + std::to_string(i + 1) + " : i32}";
      results += ", " + p.type + place(3, p.offset);
      values += ", %r_" + p.model.name;
      types += ", " + p.type;
    }
    text += ") -> (" + results + ") attributes {boa.kernel} {\n";
    body();
    linearGrad("dy", x, "proj", "g", hidden, "dg");
    op("df = boa.gelu_grad %f, %dg : " + hidden);
    linearGrad("df", hidden, "fc", "l2", x, "dl2");
    normGrad("dl2", "ln2", "h", "dh2");
    op("dh = boa.add %dy, %dh2 : " + x + ", " + x);
    linearGrad("dh", x, "out", "y", x, "dyy");
    op("dq, %dk, %dv = boa.attention_grad %q, %k, %v, %y, %lse, %dyy heads " + heads() + " : (" +
       x + ", " + x + ", " + x + ", " + x + ", " + lse + ", " + x + ") -> (" + x + ", " + x + ", " +
       x + ")");
    op("dqkv = boa.concat %dq, %dk, %dv : (" + x + ", " + x + ", " + x + ") -> " + qkv);
    linearGrad("dqkv", qkv, "qkv", "l1", x, "dl1");
    normGrad("dl1", "ln1", "x", "dx1");
    op("dx = boa.add %dh, %dx1 : " + x + ", " + x);
    for (const Parameter &p : all)
      op("r_" + p.model.name + " = boa.add %g_" + p.model.name + ", %d" + p.model.name + " : " +
         p.type + ", " + p.type);
    return text + "  return " + values + " : " + types + "\n}\n";
  }

private:
  struct Parameter {
    std::string name, type, stored;
    int64_t offset; // of the gradient
    int64_t storedOffset;
  };

  static std::string tensor(std::vector<int64_t> shape) {
    std::string result = "tensor<";
    for (int64_t extent : shape)
      result += std::to_string(extent) + "x";
    return result + "f32>";
  }
  static std::string place(int64_t buffer, int64_t offset) {
    return " {boa.buffer = " + std::to_string(buffer) +
           " : i32, boa.offset = " + std::to_string(offset) + " : i64}";
  }
  void add(const std::string &name, std::vector<int64_t> shape) {
    std::string type = tensor(shape), stored = type;
    if (bf16)
      stored.replace(stored.size() - 4, 3, "bf16");
    all.push_back({name, type, stored, bytes, storedBytes});
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    bytes += (count * 4 + 63) / 64 * 64;
    storedBytes += (count * (bf16 ? 2 : 4) + 63) / 64 * 64;
  }
  std::string parameters() const {
    std::string result;
    for (const Parameter &p : all)
      result +=
          ", %" + p.model.name + (bf16 ? "_bf16" : "") + ": " + p.stored + place(1, p.storedOffset);
    return result;
  }
  const std::string &type(const std::string &name) const {
    for (const Parameter &p : all)
      if (p.model.name == name)
        return p.type;
    std::abort();
  }
  std::string heads() const {
    return std::to_string(s.heads) + ", " + std::to_string(s.heads) + " causal";
  }
  void op(const std::string &line) { text += "  %" + line + "\n"; }
  void linear(const std::string &y, const std::string &in, const std::string &inType,
              const std::string &name, const std::string &outType) {
    op(y + " = boa.linear %" + in + ", %" + name + "_w bias %" + name + "_b : (" + inType + ", " +
       type(name + "_w") + ", " + type(name + "_b") + ") -> " + outType);
  }
  void linearGrad(const std::string &dy, const std::string &dyType, const std::string &name,
                  const std::string &in, const std::string &inType, const std::string &dx) {
    op(dx + " = boa.linear %" + dy + ", %" + name + "_w transpose : (" + dyType + ", " +
       type(name + "_w") + ") -> " + inType);
    op("d" + name + "_w = boa.linear_weight_grad %" + in + ", %" + dy + " : (" + inType + ", " +
       dyType + ") -> " + type(name + "_w"));
    op("d" + name + "_b = boa.sum_leading %" + dy + " : " + dyType + " to " + type(name + "_b"));
  }
  void norm(const std::string &y, const std::string &in, const std::string &name) {
    op(y + " = boa.layer_norm %" + in + ", %" + name + "_w, %" + name + "_b : (" + x + ", " +
       type(name + "_w") + ", " + type(name + "_b") + ") -> " + x);
  }
  void normGrad(const std::string &dy, const std::string &name, const std::string &in,
                const std::string &dx) {
    op(dx + ", %d" + name + "_w, %d" + name + "_b = boa.layer_norm_grad %" + in + ", %" + name +
       "_w, %" + dy + " : (" + x + ", " + type(name + "_w") + ", " + x + ") -> (" + x + ", " +
       type(name + "_w") + ", " + type(name + "_b") + ")");
  }
  /// Everything up to the activation of the feed-forward part.
  void body() {
    if (bf16)
      for (const Parameter &p : all)
        op(p.model.name + " = boa.cast %" + p.model.name + "_bf16 : " + p.stored + " to " + p.type);
    norm("l1", "x", "ln1");
    linear("qkv", "l1", x, "qkv", qkv);
    op("q, %k, %v = boa.split %qkv : (" + qkv + ") -> (" + x + ", " + x + ", " + x + ")");
    op("y, %lse = boa.attention %q, %k, %v heads " + heads() + " : (" + x + ", " + x + ", " + x +
       ") -> (" + x + ", " + lse + ")");
    linear("o", "y", x, "out", x);
    op("h = boa.add %x, %o : " + x + ", " + x);
    norm("l2", "h", "ln2");
    linear("f", "l2", x, "fc", hidden);
    op("g = boa.gelu %f : " + hidden);
  }

  Shape s;
  std::vector<Parameter> all;
  int64_t bytes = 0, storedBytes = 0;
  std::string x, qkv, hidden, lse, text;
};

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

float *allocate(int64_t bytes) {
  auto *memory = static_cast<float *>(
      std::aligned_alloc(4096, static_cast<size_t>((bytes + 4095) / 4096 * 4096)));
  for (int64_t i = 0; i < bytes / 4; ++i)
    memory[i] = static_cast<float>((i * 7919) % 1009) / 1009 * 0.1f - 0.05f;
  return memory;
}

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
                   c, p.n);
    best = std::min(best, now() - start);
  }
  std::free(a), std::free(b), std::free(c);
  return best;
}

/// The kernels of an instruction set for one type, and the seconds that they took.
struct ProductWay {
  boa::Isa isa;
  bool narrow;         // bf16
  double best[3] = {}; // of one product, each of its forms: y = x w, dx = dy w^T, dw += x^T dy
  double total = 0;    // of all products
};

template <typename T, typename Gemm>
void timeForms(ProductWay &way, int64_t m, int64_t n, int64_t k, const void *xs, const void *ws,
               const void *ys, float *out, Gemm gemm) {
  const T *x = static_cast<const T *>(xs), *w = static_cast<const T *>(ws),
          *y = static_cast<const T *>(ys);
  auto time = [&](int form, auto... arguments) {
    double start = now();
    gemm(arguments...);
    way.best[form] = std::min(way.best[form], now() - start);
  };
  time(0, 0, 0, m, n, k, x, k, w, n, nullptr, 0, out, n);
  time(1, 0, 1, m, k, n, y, n, w, n, nullptr, 0, out, k);
  time(2, 1, 0, k, n, m, x, k, y, n, nullptr, 1, out, n);
}

/// One product in each way, in turns: a busy moment of the machine does not hit one way alone.
void timeProduct(std::vector<ProductWay> &ways, int64_t m, int64_t n, int64_t k) {
  float *x = allocate(m * k * 4), *w = allocate(k * n * 4), *y = allocate(m * n * 4);
  float *out = allocate(std::max({m * k, k * n, m * n}) * 4);
  // Numbers whose upper half is a number, too.
  auto narrowed = [](const float *values, int64_t count) {
    std::vector<uint16_t> upper(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      upper[static_cast<size_t>(i)] =
          static_cast<uint16_t>(llvm::bit_cast<uint32_t>(values[i]) >> 16);
    return upper;
  };
  const std::vector<uint16_t> x16 = narrowed(x, m * k), w16 = narrowed(w, k * n),
                              y16 = narrowed(y, m * n);
  for (ProductWay &way : ways)
    std::fill(std::begin(way.best), std::end(way.best), 1e9);
  for (int turn = 0; turn < 9; ++turn)
    for (ProductWay &way : ways) {
      (void)boa::UseIsa(boa::IsaName(way.isa)); // this processor has it
      if (way.narrow)
        timeForms<uint16_t>(way, m, n, k, x16.data(), w16.data(), y16.data(), out,
                            boa_gemm_bf16_bf16);
      else
        timeForms<float>(way, m, n, k, x, w, y, out, boa_gemm_f32);
    }
  const double flops = 2e-9 * static_cast<double>(m * n * k);
  for (ProductWay &way : ways) {
    std::printf("  %-12s %-4s %8.0f %8.0f %8.0f\n", boa::IsaName(way.isa),
                way.narrow ? "bf16" : "f32", flops / way.best[0], flops / way.best[1],
                flops / way.best[2]);
    way.total += way.best[0] + way.best[1] + way.best[2];
  }
  std::free(x), std::free(w), std::free(y), std::free(out);
}

/// Whether the table (isa.cpp) chooses the fastest kernels for a type. Ways within a tenth of
/// the fastest are as good: the machine may have been busy.
bool judgeTable(const std::vector<ProductWay> &ways, bool narrow, boa::Isa table) {
  const ProductWay *fastest = nullptr, *chosen = nullptr;
  for (const ProductWay &way : ways) {
    if (way.narrow != narrow)
      continue;
    if (!fastest || way.total < fastest->total)
      fastest = &way;
    if (way.isa <= table)
      chosen = &way; // above it f32 has no other kernels
  }
  const char *type = narrow ? "bf16" : "f32";
  const double ratio = chosen->total / fastest->total;
  std::printf("%s: %s is the fastest; the table chooses %s, which takes %.2f times as long\n", type,
              boa::IsaName(fastest->isa), boa::IsaName(chosen->isa), ratio);
  if (ratio <= 1.1)
    return true;
  const boa::Processor processor = boa::ThisProcessor();
  std::printf("the table is wrong here: %s should be by %s on %s, family 0x%02x, model 0x%02x\n",
              type, boa::IsaName(fastest->isa), processor.vendor.c_str(),
              static_cast<unsigned>(processor.Family()), static_cast<unsigned>(processor.Model()));
  return false;
}

/// 1 where the table chooses slow kernels.
int measureProducts() {
  const boa::Processor processor = boa::ThisProcessor();
  const boa::Isa before = boa::UsedIsa();
  std::vector<ProductWay> ways;
  for (bool narrow : {false, true})
    for (const char *name : boa::kIsaNames) {
      const absl::StatusOr<boa::Isa> isa = boa::ChooseIsa(processor, name);
      if (!isa.ok())
        std::printf("%s: %s\n", name, std::string(isa.status().message()).c_str());
      else if (narrow || *isa <= boa::Isa::kAvx512)
        ways.push_back({*isa, narrow});
    }
  const std::pair<int64_t, int64_t> weights[] = {{384, 1152}, {384, 384},  {384, 1536},
                                                 {1536, 384}, {768, 3072}, {3072, 768}};
  for (int64_t m : {512, 2048})
    for (auto [k, n] : weights) {
      std::printf("x [%ld, %ld], w [%ld, %ld]: GFLOP/s of y, dx, dw\n", m, k, k, n);
      timeProduct(ways, m, n, k);
    }
  (void)boa::UseIsa(boa::IsaName(before));
  const boa::Isa table = *boa::ChooseIsa(processor);
  bool right = true;
  for (bool narrow : {false, true})
    right &= judgeTable(ways, narrow, table);
  return right ? 0 : 1;
}

struct AttentionShape {
  int64_t batch, time, heads, kvHeads, d;
};

/// q, k, v side by side in rows of one buffer, as a split of one product leaves them.
template <typename T> class AttentionRun {
public:
  explicit AttentionRun(AttentionShape s)
      : s(s), width(s.heads * s.d), stride((s.heads + 2 * s.kvHeads) * s.d), rows(s.batch * s.time),
        qkv(fill(rows * stride)), dy(fill(rows * width)), y(rows * width), grad(rows * stride),
        lse(rows * s.heads) {}

  template <typename Forward> void forward(Forward call) {
    const T *q = qkv.data(), *k = q + width, *v = k + s.kvHeads * s.d;
    call(s.batch, s.time, s.heads, s.kvHeads, s.d, 1, q, stride, k, stride, v, stride, y.data(),
         width, lse.data());
  }
  template <typename Backward> void backward(Backward call) {
    const T *q = qkv.data(), *k = q + width, *v = k + s.kvHeads * s.d;
    T *dq = grad.data(), *dk = dq + width, *dv = dk + s.kvHeads * s.d;
    call(s.batch, s.time, s.heads, s.kvHeads, s.d, 1, q, stride, k, stride, v, stride, y.data(),
         width, lse.data(), dy.data(), width, dq, stride, dk, stride, dv, stride);
  }

private:
  static std::vector<T> fill(int64_t count) {
    std::vector<T> values(count);
    for (int64_t i = 0; i < count; ++i) {
      float value = static_cast<float>((i * 7919) % 1009) / 1009 * 2 - 1;
      if constexpr (sizeof(T) == 2)
        values[i] = static_cast<T>(llvm::bit_cast<uint32_t>(value) >> 16);
      else
        values[i] = value;
    }
    return values;
  }

  AttentionShape s;
  int64_t width, stride, rows;
  std::vector<T> qkv, dy, y, grad;
  std::vector<float> lse;
};

/// Causal. A row is one of a head's queries; two products forward and five backward
/// are counted, of what is not masked.
void measureAttention(AttentionShape s) {
  constexpr int kTurns = 9;
  std::printf("batch %ld, context %ld, heads %ld of %ld, key/value heads %ld: GFLOP/s (ns a row) "
              "forward, backward\n",
              s.batch, s.time, s.heads, s.d, s.kvHeads);
  struct Way {
    const char *isa;
    bool narrow;
    std::vector<double> forward, backward;
  };
  std::vector<Way> ways;
  const char *before = boa::IsaName(boa::UsedIsa());
  for (const char *isa : {"baseline", "avx2", "avx512", "avx512_bf16"})
    if (boa::UseIsa(isa).ok())
      for (bool narrow : {false, true})
        ways.push_back({isa, narrow, {}, {}});
  AttentionRun<float> wide(s);
  AttentionRun<uint16_t> narrow(s);
  for (int turn = 0; turn < kTurns; ++turn)
    for (Way &way : ways) {
      (void)boa::UseIsa(way.isa);
      double start = now();
      way.narrow ? narrow.forward(boa_attention_bf16) : wide.forward(boa_attention_f32);
      double middle = now();
      way.narrow ? narrow.backward(boa_attention_grad_bf16) : wide.backward(boa_attention_grad_f32);
      way.forward.push_back(middle - start);
      way.backward.push_back(now() - middle);
    }
  (void)boa::UseIsa(before);
  double rows = static_cast<double>(s.batch * s.heads * s.time);
  double product = rows * static_cast<double>(s.d * (s.time + 1)) * 1e-9;
  for (Way &way : ways) {
    auto median = [](std::vector<double> &seconds) {
      std::nth_element(seconds.begin(), seconds.begin() + kTurns / 2, seconds.end());
      return seconds[kTurns / 2];
    };
    double forward = median(way.forward), backward = median(way.backward);
    std::printf("  %-12s %-4s %5.0f (%6.0f) %5.0f (%6.0f)\n", way.isa, way.narrow ? "bf16" : "f32",
                2 * product / forward, forward / rows * 1e9, 5 * product / backward,
                backward / rows * 1e9);
  }
}

void measureAttention() {
  for (AttentionShape s : {AttentionShape{2, 256, 12, 12, 64}, AttentionShape{8, 256, 12, 12, 64},
                           AttentionShape{1, 2048, 4, 4, 64}, AttentionShape{1, 2048, 4, 4, 128},
                           AttentionShape{1, 2048, 8, 2, 128}})
    measureAttention(s);
}

void measure(Shape s) {
  Block block(s);
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
  boa::buildCpuPipeline(pm);
  if (!module || failed(pm.run(*module)))
    std::abort();
  if (const char *what = std::getenv("BOA_BENCH_PRINT"))
    llvm::errs() << llvm::cantFail(StringRef(what) == "llvm" ? boa::emitLLVMIR(*module)
                                                             : boa::emitAssembly(*module));
  double lowered = now();
  auto program = llvm::cantFail(boa::JitProgram::create(*module, kSymbols));
  std::printf("width %ld, %ld heads, context %ld, micro-batch %ld\n", s.width, s.heads, s.context,
              s.batch);
  const char *names[] = {"block_forward", "block_backward"};
  int64_t workspaces[2];
  boa_kernel kernels[2];
  for (int i : {0, 1}) {
    kernels[i] = llvm::cantFail(program->lookupAs<boa_kernel>(names[i]));
    workspaces[i] = module->lookupSymbol<LLVM::LLVMFuncOp>(names[i])
                        ->getAttrOfType<IntegerAttr>(boa::kWorkspaceAttr)
                        .getInt();
  }
  std::printf("  compiled in %.0f ms (passes %.0f)\n", (now() - start) * 1e3,
              (lowered - start) * 1e3);

  int64_t activation = s.batch * s.context * s.width * 4;
  void *buffers[] = {allocate(activation), allocate(block.parameterBytes()), allocate(activation),
                     allocate(block.parameterBytes()), allocate(activation)};
  for (int i : {0, 1}) {
    void *workspace = allocate(workspaces[i]);
    // The least of each part: other programs only add.
    double best = 1e9, gemm = 1e9, attention = 1e9, generated = 1e9, flops = 0;
    std::map<void *, double> each;
    for (int repeat = 0; repeat < 15; ++repeat) {
      gemmSeconds = attentionSeconds = loopSeconds = products = 0;
      calls.clear(), loops.clear();
      double begin = now();
      kernels[i](buffers, workspace, nullptr);
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
