//===- reference_optimizer.h - AdamW, plainly -------------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In place of a compiled optimizer, for tests of the runtime without the compiler. States are f32.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_RUNTIME_REFERENCE_OPTIMIZER_H
#define BOA_TEST_RUNTIME_REFERENCE_OPTIMIZER_H

#include "runtime/abi/program.h"
#include "runtime/kernels/master.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace boa {

/// The states of kReferenceAdamW.
inline const Optimizer kReferenceShape = {"adamw", {{"momentum", "f32"}, {"variance", "f32"}}, 5};
/// Its betas and eps. A test sets them before a step runs.
inline OptimizerSettings reference_settings;

inline void PrepareReference(int64_t step, float *scalars) {
  const float below_one = std::nextafter(1.0f, 0.0f);
  scalars[0] = std::min(float(reference_settings.beta1), below_one);
  scalars[1] = std::min(float(reference_settings.beta2), below_one);
  scalars[2] = float(reference_settings.eps);
  for (int i : {0, 1})
    scalars[3 + i] = float(1 / (1 - std::pow(double(scalars[i]), double(step))));
}

/// Of one element. False: it is not finite.
inline bool UpdateReference(float &w, float g, float &m, float &v, const float *scalars, float rate,
                            float decay) {
  m = scalars[0] * m + (1 - scalars[0]) * g;
  v = scalars[1] * v + (1 - scalars[1]) * (g * g);
  w -= rate * (m * scalars[3] / (std::sqrt(v * scalars[4]) + scalars[2]) + decay * w);
  return std::isfinite(m) && std::isfinite(v) && std::isfinite(w);
}

inline int32_t UpdateReferenceRanges(void *weights, int16_t *low, const float *gradient,
                                     void *const *states, const float *scalars, float scale,
                                     const boa_update_range *ranges, int64_t count, int64_t begin,
                                     int64_t end, int64_t, uint32_t) {
  auto *full = static_cast<float *>(weights);
  auto *high = static_cast<uint16_t *>(weights);
  auto *m = static_cast<float *>(states[0]), *v = static_cast<float *>(states[1]);
  bool finite = true;
  for (const boa_update_range *range = ranges; range < ranges + count; ++range)
    for (int64_t i = std::max(begin, range->begin); i < std::min(end, range->end); ++i) {
      uint32_t bits = low ? JoinMaster(high[i], low[i]) : 0;
      float w = low ? 0 : full[i];
      if (low)
        std::memcpy(&w, &bits, sizeof w);
      finite &=
          UpdateReference(w, gradient[i] * scale, m[i], v[i], scalars, range->rate, range->decay);
      std::memcpy(&bits, &w, sizeof w);
      if (low) {
        high[i] = MasterHigh(bits);
        low[i] = MasterLow(bits);
      } else {
        full[i] = w;
      }
    }
  return finite;
}

/// SGD without states, of f32 weights.
inline int32_t UpdateSgd(void *weights, int16_t *, const float *gradient, void *const *,
                         const float *, float scale, const boa_update_range *ranges, int64_t count,
                         int64_t begin, int64_t end, int64_t, uint32_t) {
  auto *w = static_cast<float *>(weights);
  for (const boa_update_range *range = ranges; range < ranges + count; ++range)
    for (int64_t i = std::max(begin, range->begin); i < std::min(end, range->end); ++i)
      w[i] -= range->rate * (gradient[i] * scale);
  return 1;
}

inline const boa_optimizer kReferenceSgd = {[](int64_t, float *) {}, UpdateSgd};
inline const boa_optimizer kReferenceAdamW = {PrepareReference, UpdateReferenceRanges};

} // namespace boa

#endif // BOA_TEST_RUNTIME_REFERENCE_OPTIMIZER_H
