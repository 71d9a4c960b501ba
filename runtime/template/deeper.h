//===- deeper.h - How deep a rendering is --------------------- -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_DEEPER_H
#define BOA_RUNTIME_TEMPLATE_DEEPER_H

#include "runtime/template/run.h"

namespace boa::jinja {

/// While it lives, one statement or expression more is open. At the limit, the rendering fails.
class Deeper {
public:
  explicit Deeper(Run &run) : run(run) {
    if (++run.depth > run.options.depth)
      run.FailAs(absl::StatusCode::kResourceExhausted,
                 absl::StrCat("statements and macros nested deeper than ", run.options.depth));
  }
  Deeper(Run &run, int32_t at) : Deeper(run) { run.at = at; }
  ~Deeper() { --run.depth; }

private:
  Run &run;
};

} // namespace boa::jinja

#endif // BOA_RUNTIME_TEMPLATE_DEEPER_H
