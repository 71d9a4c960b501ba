//===- Harness.h - Functions of compute ops, compiled and run ---*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of compute ops is given as text, compiled through the kernel
// pipeline and run in process. Values are doubles on this side, whatever the
// element type of the function. With BOA_TEST_TARGET=cuda those that have no f64 are
// compiled for a GPU, and their launches run by the emulator (EmulatedGpu.h).
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_GRADIENTS_HARNESS_H
#define BOA_TEST_GRADIENTS_HARNESS_H

#include "runtime/abi/tables.h"
#include "test/gradients/Values.h"

#include <memory>
#include <optional>

namespace boa {
enum class DeviceCode;
} // namespace boa

namespace boa::testing {

/// One compiled function: each argument and result in a buffer of its own.
class Compiled {
public:
  /// Compiles function @f of the module. With `gradient`, its vector-Jacobian
  /// product instead: arguments are those of @f, then the gradients of its
  /// results; results are the gradients of the floating-point arguments.
  /// `accumulate`: each result of the product is added to a tensor given in its
  /// place, in place. `blockRows`: at most so many rows at once of wide products; 0: as the
  /// target likes. Aborts with a message on any error.
  /// Compiled once for each set of arguments.
  static const Compiled *get(const std::string &text, bool gradient = false,
                             bool accumulate = false, int64_t blockRows = 0);
  ~Compiled();

  const std::vector<Operand> &arguments() const;
  const std::vector<Operand> &results() const;
  int64_t workspace() const;

  /// `results`, where given, is what result buffers hold before.
  std::vector<Values> run(const std::vector<Values> &arguments,
                          const std::vector<Values> &results = {}) const;

private:
  Compiled();
  static std::unique_ptr<Compiled> create(const std::string &text, bool gradient, bool accumulate,
                                          int64_t blockRows);
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// A table that a kernel reads.
struct KernelTable {
  AngleTable table;
  Operand operand;
};

struct KernelObject {
  std::string object; // the file
  std::vector<Operand> arguments, results;
  int64_t workspace;
  std::vector<KernelTable> tables; // whose addresses follow those of the results
};

/// The object file of @f or its vector-Jacobian product, as above, for a processor
/// (passes/target/cpu/Codegen.h). It has the kernel, as `name`. With a form of its code
/// (passes/target/Target.h) it is a GPU's, if no tensor is of f64. Then the file has its
/// boa_device_image, as `name`_image.
KernelObject compileToObject(const std::string &text, bool gradient, std::optional<DeviceCode> gpu,
                             const std::string &name, const std::string &cpu);

/// What compiling @f says if the runtime's symbols are kept from it.
std::string compileWithoutRuntime(const std::string &text);

} // namespace boa::testing

#endif // BOA_TEST_GRADIENTS_HARNESS_H
