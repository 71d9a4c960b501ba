//===- kernels.cpp --------------------------------------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/gpu/kernels.h"

#include "test/gpu/session.h"
#include "test/gradients/Cases.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

namespace boa::gputest {
namespace {

using boa::testing::Case;
using boa::testing::Difference;
using boa::testing::Operand;
using boa::testing::Values;
using nlohmann::json;

/// Longer than any case takes, whose kernel the driver must first compile.
constexpr int kPatienceMs = 120'000;
/// Bytes behind each buffer that nothing may write.
constexpr size_t kGuard = 256;

std::vector<Operand> ReadOperands(const json &all) {
  std::vector<Operand> operands;
  for (const json &one : all)
    operands.push_back(
        {one["shape"].get<std::vector<int64_t>>(), one["element"].get<std::string>()});
  return operands;
}

std::vector<Values> MakeTables(const json &all, std::vector<Operand> &operands) {
  std::vector<Values> tables;
  for (const json &one : all) {
    operands.push_back(ReadOperands(one["operand"]).front());
    const AngleTable table{one["function"].get<std::string>(), operands.back().shape.front(),
                           one["frequencies"].get<std::vector<double>>()};
    FillTable(table, tables.emplace_back(table.elements()).data());
  }
  return tables;
}

/// One kernel of a case's shared object.
struct Kernel {
  std::string symbol;
  std::vector<Operand> arguments, results, tables;
  std::vector<Values> table_values;
  int64_t workspace = 0;
  boa_kernel function = nullptr;
  const boa_device_image *image = nullptr;

  Kernel(const json &from, void *library)
      : symbol(from["symbol"].get<std::string>()), arguments(ReadOperands(from["arguments"])),
        results(ReadOperands(from["results"])), table_values(MakeTables(from["tables"], tables)),
        workspace(from["workspace"].get<int64_t>()),
        function(reinterpret_cast<boa_kernel>(dlsym(library, symbol.c_str()))),
        image(static_cast<const boa_device_image *>(
            dlsym(library, absl::StrCat(symbol, "_image").c_str()))) {}

  /// Arguments, then results, then tables, then the workspace.
  std::vector<size_t> Sizes() const {
    std::vector<size_t> sizes;
    for (const std::vector<Operand> *operands : {&arguments, &results, &tables})
      for (const Operand &operand : *operands)
        sizes.push_back(size_t(bytesOf(operand)));
    sizes.push_back(size_t(workspace));
    return sizes;
  }
};

/// Where buffers of these sizes lie, with guards between them.
std::vector<size_t> Place(const std::vector<size_t> &sizes, size_t &bytes) {
  std::vector<size_t> offsets;
  bytes = 0;
  for (size_t size : sizes) {
    offsets.push_back(bytes);
    bytes += (size + 255) / 256 * 256 + kGuard;
  }
  return offsets;
}

std::vector<Values> RunOnCpu(const Kernel &kernel, const std::vector<Values> &arguments) {
  size_t bytes = 0;
  const std::vector<size_t> offsets = Place(kernel.Sizes(), bytes);
  auto free = [](char *memory) { std::free(memory); };
  std::unique_ptr<char, decltype(free)> memory(static_cast<char *>(std::aligned_alloc(256, bytes)),
                                               free);
  std::vector<void *> buffers;
  for (size_t offset : offsets)
    buffers.push_back(memory.get() + offset);
  for (size_t i = 0; i < arguments.size(); ++i)
    store(kernel.arguments[i], arguments[i], buffers[i]);
  for (size_t i = 0; i < kernel.tables.size(); ++i)
    store(kernel.tables[i], kernel.table_values[i],
          buffers[arguments.size() + kernel.results.size() + i]);
  kernel.function(buffers.data(), buffers.back(), nullptr);
  std::vector<Values> results;
  for (size_t i = 0; i < kernel.results.size(); ++i)
    results.push_back(load(kernel.results[i], buffers[kernel.arguments.size() + i]));
  return results;
}

/// What of the queue outlives a kernel: the library for products, and who did attention.
class Runner {
public:
  explicit Runner(const Session &session) : session(session) {}
  /// Of the last kernel that ran: empty where it has no attention that a library is offered.
  const std::string &attention() const { return described; }
  absl::StatusOr<std::vector<Values>> Run(const Kernel &kernel,
                                          const std::vector<Values> &arguments) {
    auto gpu = cuda::Gpu::Open();
    if (!gpu.ok())
      return gpu.status();
    if (absl::Status status = (*gpu)->Load(*kernel.image); !status.ok())
      return status;
    size_t bytes = 0;
    const std::vector<size_t> sizes = kernel.Sizes(), offsets = Place(sizes, bytes);
    DeviceMemory memory(session);
    absl::Status status = memory.Allocate(bytes);
    std::vector<char> host(bytes, char(0xff));
    for (size_t i = 0; i < arguments.size() && status.ok(); ++i) {
      store(kernel.arguments[i], arguments[i], &host[offsets[i]]);
      status = memory.Put(offsets[i], &host[offsets[i]], sizes[i]);
    }
    for (size_t i = 0; i < kernel.tables.size() && status.ok(); ++i) {
      const size_t at = arguments.size() + kernel.results.size() + i;
      store(kernel.tables[i], kernel.table_values[i], &host[offsets[at]]);
      status = memory.Put(offsets[at], &host[offsets[at]], sizes[at]);
    }
    if (status.ok())
      status = Launch(kernel, **gpu, memory, offsets);
    if (status.ok())
      status = memory.Get(0, host.data(), bytes);
    if (!status.ok())
      return status;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const size_t end = i + 1 < sizes.size() ? offsets[i + 1] : bytes;
      for (size_t at = offsets[i] + sizes[i]; at < end; ++at)
        if (host[at] != char(0xff))
          return absl::InternalError(
              absl::StrCat("wrote past the end of ",
                           i + 1 < sizes.size() ? "buffer " : "the workspace, buffer ", i));
    }
    std::vector<Values> results;
    for (size_t i = 0; i < kernel.results.size(); ++i)
      results.push_back(load(kernel.results[i], &host[offsets[kernel.arguments.size() + i]]));
    return results;
  }

private:
  absl::Status Launch(const Kernel &kernel, const cuda::Gpu &gpu, const DeviceMemory &memory,
                      const std::vector<size_t> &offsets) {
    boa_queue queue;
    queue.gpu = &gpu;
    queue.driver = &gpu.driver();
    queue.stream = session.stream();
    queue.blas = std::move(blas);
    std::vector<void *> buffers;
    for (size_t offset : offsets)
      buffers.push_back(memory.at(offset));
    for (bool plans : {true, false}) {
      queue.plans = plans;
      kernel.function(buffers.data(), buffers.back(), &queue);
    }
    absl::Status status = queue.status.ok() ? session.Wait() : queue.status;
    blas = std::move(queue.blas);
    described = queue.dnn ? queue.dnn->Describe() : "";
    return status;
  }

  const Session &session;
  std::unique_ptr<cuda::Blas> blas;
  std::string described;
};

/// Lines for the parent, each "ELEMENT KERNEL FOUND ALLOWED", "attention ..." or "error ...", then
/// "over".
class Report {
public:
  explicit Report(int fd) : out(fdopen(fd, "w")) {}
  template <typename... Args> void Line(const Args &...args) {
    std::fputs(absl::StrCat(args..., "\n").c_str(), out);
    std::fflush(out);
  }

private:
  std::FILE *out;
};

constexpr char kByLibrary[] = "attention by cuDNN";

/// Kernels make the queues that they run on anew, and each asks the environment.
class WithoutLibrary {
public:
  WithoutLibrary() {
    if (const char *const named = std::getenv("BOA_CUDA_DNN"))
      before = named;
    setenv("BOA_CUDA_DNN", "none", 1);
  }
  ~WithoutLibrary() {
    if (before)
      setenv("BOA_CUDA_DNN", before->c_str(), 1);
    else
      unsetenv("BOA_CUDA_DNN");
  }

private:
  std::optional<std::string> before;
};

/// False: the GPU is of no more use.
bool RunCase(const Case &c, const json &packed, const std::string &directory, Runner &runner,
             Report &report) {
  void *library = dlopen(absl::StrCat(directory, "/", c.name, ".so").c_str(), RTLD_NOW);
  if (!library) {
    report.Line("error ", c.name, ": ", dlerror());
    return true;
  }
  std::map<std::string, Kernel> kernels;
  for (const json &one : packed["kernels"])
    kernels.emplace(one["symbol"].get<std::string>(), Kernel(one, library));
  bool usable = true;
  for (const char *element : {"f32", "bf16"})
    for (const char *what : {"_forward", "_gradient"}) {
      auto on_cpu = kernels.find(absl::StrCat("f64", what));
      auto on_gpu = kernels.find(absl::StrCat(element, what));
      if (on_cpu == kernels.end() || on_gpu == kernels.end() || !usable)
        continue;
      const Kernel &kernel = on_gpu->second;
      const std::vector<Operand> &forward = kernels.at(absl::StrCat(element, "_forward")).arguments;
      std::vector<Values> arguments = makeArguments(c, forward);
      const std::vector<Operand> seeded(kernel.arguments.begin() + long(forward.size()),
                                        kernel.arguments.end());
      for (Values &seed : boa::testing::makeSeeds(seeded))
        arguments.push_back(std::move(seed));
      for (size_t i = 0; i < arguments.size(); ++i)
        arguments[i] = roundTo(kernel.arguments[i], arguments[i]);
      const std::vector<Values> want = RunOnCpu(on_cpu->second, arguments);
      auto compare = [&](const char *how) {
        auto got = runner.Run(kernel, arguments);
        if (!got.ok())
          report.Line("error ", c.name, " ", kernel.symbol, how, ": ", got.status().message());
        for (size_t i = 0; got.ok() && i < want.size(); ++i) {
          const Difference difference =
              compareWithDouble(c, element, what[1] == 'g', (*got)[i], want[i],
                                {/*attention=*/true, /*products=*/true});
          report.Line(element, " ", c.name, what, how, ",result_", i, " ", difference.found, " ",
                      difference.allowed);
        }
        usable = got.ok();
      };
      compare("");
      if (!runner.attention().empty())
        report.Line(runner.attention());
      // What a library did is to be right without it, too.
      if (usable && absl::StartsWith(runner.attention(), kByLibrary)) {
        const WithoutLibrary without;
        compare("_own");
      }
    }
  kernels.clear();
  dlclose(library);
  return usable;
}

/// In the child: cases from `first` on. Its exit status is 0 if it came to the end.
int RunCases(const json &packed, size_t first, const std::string &directory, int fd) {
  Report report(fd);
  auto session = Session::Open();
  if (!session.ok()) {
    report.Line("nothing ", session.status().message());
    return 1;
  }
  Runner runner(**session);
  const std::vector<Case> &all = boa::testing::cases();
  for (size_t i = first; i < packed.size(); ++i) {
    const std::string name = packed[i]["case"].get<std::string>();
    const auto of =
        std::find_if(all.begin(), all.end(), [&](const Case &c) { return c.name == name; });
    if (of == all.end())
      report.Line("error ", name, ": was packed by another version of this program");
    else if (!RunCase(*of, packed[i], directory, runner, report))
      return 1;
    report.Line("over");
  }
  return 0;
}

/// A signal asked this process to end. It prints its results first.
volatile std::sig_atomic_t is_ended = 0;

/// What was found for one element type.
struct Summary {
  int kernels = 0, wrong = 0;
  double share = 0; // the largest of what is allowed
  std::string worst;
};

class Parent {
public:
  explicit Parent(const std::string &directory) : directory(directory) {}
  int Run() {
    std::ifstream file(directory + "/kernels.json");
    packed = json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!packed.is_array() || packed.empty()) {
      std::printf("kernels failed: error: cannot read %s/kernels.json\n", directory.c_str());
      return 1;
    }
    struct sigaction ending = {};
    ending.sa_handler = [](int) { is_ended = 1; };
    sigaction(SIGTERM, &ending, nullptr);
    while (done < packed.size() && !nothing_runs && !is_ended)
      RunChild();
    if (!attention.empty())
      std::printf("%s\n", attention.c_str());
    for (const auto &[element, s] : summaries)
      std::printf("%s: %d results of kernels compared with f64, %d wrong; nearest to what is "
                  "allowed: %.0f%% (%s)\n",
                  element.c_str(), s.kernels, s.wrong, 100 * s.share, s.worst.c_str());
    if (is_ended)
      std::printf("ended after %d of %d cases\n", int(done), int(packed.size()));
    return failed || is_ended ? 1 : 0;
  }

private:
  void Fail(const std::string &line) {
    std::printf("kernels failed: error: %s\n", line.c_str());
    failed = true;
  }

  void RunChild() {
    int ends[2];
    if (pipe(ends) != 0)
      std::abort();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) {
      Fail(absl::StrCat("cannot start a process: ", strerror(errno)));
      nothing_runs = true;
      close(ends[0]);
      close(ends[1]);
      return;
    }
    if (child == 0) {
      signal(SIGTERM, SIG_DFL);
      close(ends[0]);
      std::exit(RunCases(packed, done, directory, ends[1]));
    }
    close(ends[1]);
    said_why = false;
    bool hangs = false;
    std::string line;
    pollfd ready{ends[0], POLLIN, 0};
    for (char buffer[4096];;) {
      const int said = poll(&ready, 1, kPatienceMs);
      hangs |= said == 0;
      if (hangs || is_ended)
        kill(child, SIGKILL);
      if (said < 0 && is_ended)
        break;
      const ssize_t count = read(ends[0], buffer, sizeof buffer);
      if (count <= 0)
        break;
      for (ssize_t i = 0; i < count; ++i)
        if (buffer[i] != '\n') {
          line += buffer[i];
        } else {
          Take(line);
          line.clear();
        }
    }
    close(ends[0]);
    if (is_ended)
      return; // the child may hang in the driver
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0 || nothing_runs)
      return;
    const std::string name =
        done < packed.size() ? packed[done]["case"].get<std::string>() : "the end";
    if (hangs)
      Fail(absl::StrCat(name, ": not over after ", kPatienceMs / 1000, " s"));
    else if (!said_why)
      Fail(absl::StrCat(name, ": ended with ",
                        WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                            : absl::StrCat("exit status ", WEXITSTATUS(status))));
    ++done;
  }

  void Take(const std::string &line) {
    char element[8], what[128];
    double found = 0, allowed = 0;
    if (line == "over") {
      ++done;
    } else if (absl::StartsWith(line, "error ")) {
      said_why = true;
      Fail(line.substr(6));
    } else if (absl::StartsWith(line, "nothing ")) {
      nothing_runs = true;
      Fail(line.substr(8));
    } else if (absl::StartsWith(line, "attention ")) {
      if (attention.empty() || absl::StartsWith(line, kByLibrary))
        attention = line;
    } else if (std::sscanf(line.c_str(), "%7s %127s %lf %lf", element, what, &found, &allowed) ==
               4) {
      Summary &summary = summaries[element];
      ++summary.kernels;
      const double share = found / allowed;
      if (!(share <= summary.share)) {
        summary.share = share;
        summary.worst = what;
      }
      if (!(share < 1)) {
        ++summary.wrong;
        Fail(absl::StrFormat("%s in %s is off by %.2g, allowed %.2g", what, element, found,
                             allowed));
      }
    }
  }

  const std::string directory;
  json packed;
  size_t done = 0; // cases that are over
  bool failed = false, said_why = false, nothing_runs = false;
  std::string attention; // who does it, if a library does so for any case
  std::map<std::string, Summary> summaries;
};

} // namespace

int RunKernels(const std::string &directory) { return Parent(directory).Run(); }

} // namespace boa::gputest
