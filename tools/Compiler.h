//===- Compiler.h - What the driver does with a spec ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spec files to a module, a module to a program: JIT-compiled into this process,
// or a stand-alone trainer on disk. Diagnostics go to stderr with the user's own
// file and line; the status that comes back then says only that there were some.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TOOLS_COMPILER_H
#define BOA_TOOLS_COMPILER_H

#include "frontend/Frontend.h"
#include "passes/target/cpu/Codegen.h"
#include "passes/Pipeline.h"
#include "passes/storage/MemoryNeed.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace boa {

struct CompileRequest {
  std::vector<std::string> files;             // specs, or one module (.mlir)
  std::vector<frontend::InputText> texts;     // what the files hold, if it is known
  std::vector<std::string> overrides;         // --set KEY=VALUE
  std::optional<frontend::HeldAdapters> held; // tools/HeldAdapters.h
  Purpose purpose = Purpose::train;           // others take one sequence at a time
  bool base = false;                          // the model without its adapters
  bool unlimited = false;                     // for names and shapes alone: any memory will do
  bool onlyFits = false;                      // PipelineOptions
  bool simulate = false;                      // nothing runs on the device: there need be none
  std::string dump;                           // directory for the IR after every pass
  std::string cpu = "host";
  std::string target;             // "cpu" or "cuda"; empty: the machine's device
  std::string deviceCode = "ptx"; // or "emulated"
  int64_t blockRows = 0;          // PipelineOptions
  /// For simulations: no group has more chunks (0: as many as a run has), and kernels that were
  /// compiled with the same key are not compiled again (empty: all are), with Phase::llvm.
  int64_t mostChunks = 0;
  std::string kernels;
  /// How to make it fit its memory, where that is not a change of the spec's plan; may be empty.
  std::string adviceOnMemory;
  /// Functions that a program in this process calls instead of the runtime's of the same name.
  std::vector<HostSymbol> replaced;

  bool isModule() const {
    return files.size() == 1 && llvm::StringRef(files[0]).ends_with(".mlir");
  }
};

/// Reads the files into `texts`, unless that was done: standard input can be read only once. An
/// error was printed.
absl::Status readTexts(CompileRequest &request);

/// Whether kernels of a spec with this change, as --set takes it, may be others.
bool mayChangeKernels(llvm::StringRef change);

/// Descriptions of kernels by `CompileRequest::kernels`, for compilers of several threads.
class KernelStore {
public:
  /// As bytecode; empty: there is none.
  std::string find(const std::string &key) const;
  void add(const std::string &key, std::string bytecode);

private:
  mutable std::mutex mutex;
  std::map<std::string, std::string> kernels;
};

/// Threads: one at a time.
class Compiler {
public:
  /// A quiet one prints no diagnostics: `diagnostics` has them. The store outlives it.
  explicit Compiler(bool quiet = false, KernelStore *store = nullptr);
  ~Compiler();

  /// Why the last module did not fit the machine's memory. None if it did, or was refused for
  /// another reason.
  const std::optional<MemoryNeed> &memoryNeed() const { return need; }

  /// Where the last program (jit) names its data, as FILE:LINE:COLUMN; empty: not known.
  const std::string &dataPlace() const { return place; }

  /// Of a quiet one, since the last module was loaded.
  const std::string &diagnostics() const { return said; }

  /// The checked spec as text (--emit=ast).
  absl::StatusOr<std::string> printSyntax(const CompileRequest &);

  /// Checks the spec and verifies its model phase. Returns a description of two lines.
  absl::StatusOr<std::string> check(const CompileRequest &);

  /// The model phase.
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> load(const CompileRequest &);

  /// Runs the passes up to `stop`.
  absl::Status lower(mlir::ModuleOp module, const CompileRequest &, Phase stop);

  /// The PTX of a module that was lowered to Phase::llvm for CUDA.
  absl::StatusOr<std::string> printPtx(mlir::ModuleOp module);

  /// Compiles into this process.
  absl::StatusOr<std::unique_ptr<JitProgram>> jit(const CompileRequest &);

  /// Writes a stand-alone trainer.
  absl::Status writeTrainer(const CompileRequest &, const std::string &path);

private:
  absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> parse(const CompileRequest &);
  void print(const std::string &diagnostics);
  mlir::OwningOpRef<mlir::ModuleOp> &findKernels(const std::string &key);
  void storeKernels(const std::string &key);

  bool quiet;
  KernelStore *store;
  std::optional<MemoryNeed> need;
  std::string said, place;
  std::unique_ptr<mlir::MLIRContext> context;
  std::map<std::string, mlir::OwningOpRef<mlir::ModuleOp>> described; // kernels, by key
};

} // namespace boa

#endif // BOA_TOOLS_COMPILER_H
