//===- signals_test.cpp - Signals outside of steps ------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A signal comes at a certain transfer or kernel. The run begins nothing more, says what is kept,
// and goes on later as if nothing had happened.
//
//===----------------------------------------------------------------------===//
#include "runtime/trainer/create_state.h"
#include "runtime/trainer/evaluate_commit.h"
#include "runtime/weights/folder_export.h"
#include "test/runtime/state/faulty_files.h"
#include "test/runtime/trainer/trainer_fixture.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

namespace boa {
namespace {

/// The real file system. Tells of each transfer before it begins.
class WatchedFiles : public FaultyFiles {
public:
  std::function<void(bool write)> on_transfer = [](bool) {};

  absl::StatusOr<std::unique_ptr<IoBackend>> CreateIo(std::vector<IoFile> files,
                                                      std::vector<IoLink> links, void *arena,
                                                      int64_t arena_bytes,
                                                      const IoOptions &options) override {
    auto real =
        FaultyFiles::CreateIo(std::move(files), std::move(links), arena, arena_bytes, options);
    if (!real.ok())
      return real.status();
    return std::make_unique<Backend>(*this, *std::move(real));
  }

private:
  class Backend : public IoBackend {
  public:
    Backend(WatchedFiles &owner, std::unique_ptr<IoBackend> real)
        : owner(owner), real(std::move(real)) {}
    void Submit(IoRequest request) override {
      owner.on_transfer(request.write);
      real->Submit(std::move(request));
    }
    std::string Describe() const override { return real->Describe(); }

  private:
    WatchedFiles &owner;
    const std::unique_ptr<IoBackend> real;
  };
};

class SignalsTest : public TrainerTest {
protected:
  SignalsTest() {
    options.disk = &files;
    linear.steps = 4;
  }
  ~SignalsTest() override { linear::on_forward = nullptr; }

  /// Each transfer of this kind is counted, and a signal comes with the first.
  void SignalAt(bool write) {
    moved = 0;
    files.on_transfer = [this, write](bool is_write) {
      if (is_write == write && moved++ == 0)
        raise(SIGTERM);
    };
  }
  /// Of an undisturbed run. The state is another one.
  std::vector<double> Expected() {
    files.on_transfer = [](bool) {};
    return Unbroken();
  }
  void ExpectInterrupted(const std::string &message) {
    const absl::Status status = Run();
    EXPECT_EQ(SignalOf(status), SIGTERM) << status;
    EXPECT_EQ(status.message(), message);
    files.on_transfer = [](bool) {};
  }
  /// The run that follows has the losses of an unbroken one.
  void ExpectGoesOn() {
    EXPECT_EQ(Run(), absl::OkStatus());
    const std::vector<double> losses = ReadLosses(options.metrics);
    EXPECT_EQ(losses, Expected());
  }
  std::string NoCommit() {
    return "interrupted before the first step; `" + options.state +
           "` holds no commit yet, and the same command begins again";
  }

  WatchedFiles files;
  std::atomic<int64_t> moved{0};
};

// Of many batches of parameters, those that were filled are written, and no more.
TEST_F(SignalsTest, WhileParametersAreFilled) {
  linear.chunk_elements = 1 << 19; // two batches
  SignalAt(/*write=*/true);
  ExpectInterrupted(NoCommit());
  EXPECT_EQ(moved, 1);
  ExpectGoesOn();
}

TEST_F(SignalsTest, WhileTheFirstCommitIsWritten) {
  linear.tier = "device";
  SignalAt(/*write=*/true);
  ExpectInterrupted(NoCommit());
  ExpectGoesOn();
}

TEST_F(SignalsTest, WhileACommitIsRestored) {
  linear.tier = "device";
  linear.steps = 2;
  ASSERT_EQ(Run(), absl::OkStatus());
  linear.steps = 4;
  options.resume = true;
  SignalAt(/*write=*/false);
  ExpectInterrupted("interrupted before the first step of this run; `" + options.state +
                    "` is as it was, and the same command continues");
  ExpectGoesOn();
}

// The rest of the batch is left out, and the step before it is committed.
TEST_F(SignalsTest, WhileATrainingIsEvaluated) {
  linear.evaluate_every = 3;
  int64_t forwards = 0;
  linear::on_forward = [&] { forwards++ == 0 ? raise(SIGTERM) : 0; };
  ExpectInterrupted("interrupted after step 3 of 4, which is committed in `" + options.state +
                    "`; the same command with --resume continues");
  EXPECT_EQ(forwards, 1); // of the two of a batch
  linear::on_forward = nullptr;
  options.resume = true;
  ExpectGoesOn();
}

TEST_F(SignalsTest, WhileACommitIsEvaluated) {
  ASSERT_EQ(Run(), absl::OkStatus());
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
  ASSERT_TRUE(program.ok()) << program.status();
  options.data = linear.data;
  int64_t forwards = 0;
  linear::on_forward = [&] { forwards++ == 0 ? raise(SIGTERM) : 0; };
  const InterruptGuard guard;
  const absl::Status status =
      Evaluate(*program, linear::kKernels, linear::Entries(linear), options, guard);
  EXPECT_EQ(SignalOf(status), SIGTERM) << status;
  EXPECT_EQ(status.message(), "interrupted; the state is as it was");
  EXPECT_LE(forwards, 2); // of the thousands of sequences of the text
}

// As `boa import --state` makes one.
TEST_F(SignalsTest, WhileAStateIsCreated) {
  linear.chunk_elements = 1 << 19; // two batches
  SignalAt(/*write=*/true);
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
  ASSERT_TRUE(program.ok()) << program.status();
  const InterruptGuard guard;
  const absl::Status status = CreateState(*program, linear::kKernels, options, guard);
  EXPECT_EQ(SignalOf(status), SIGTERM) << status;
  EXPECT_EQ(status.message(),
            "interrupted; `" + options.state + "` holds no commit, the same command begins again");
  EXPECT_EQ(moved, 1);
}

// As `boa export` writes it.
TEST_F(SignalsTest, WhileAFolderIsExported) {
  ASSERT_EQ(Run(), absl::OkStatus());
  absl::StatusOr<Program> program = ParseProgram(linear::Descriptor(linear));
  ASSERT_TRUE(program.ok()) << program.status();
  program->groups[0].parameters[0].external = "wte";
  const std::string folder = scratch.path("folder");
  {
    const InterruptGuard guard;
    raise(SIGTERM);
    EXPECT_EQ(SignalOf(ExportFolder(files, *program, options.state, folder, {}).status()), SIGTERM);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  EXPECT_TRUE(ExportFolder(files, *program, options.state, folder, {}).ok());
}

// All steps are committed, and the weights are soon saved.
TEST_F(SignalsTest, WhileAFewWeightsAreSaved) {
  RecordProperty("depends_on_time", "they are saved within three seconds");
  options.quiet = false;
  options.out = std::fopen(scratch.path("output").c_str(), "w");
  files.on_transfer = [this](bool write) {
    if (!write && moved == 0 && std::filesystem::exists(options.state + "/model.safetensors.tmp"))
      moved = raise(SIGTERM) + 1;
  };
  EXPECT_EQ(Run(), absl::OkStatus());
  std::fclose(options.out);
  EXPECT_EQ(moved, 1);
  EXPECT_NE(Output().find("weights saved to " + options.state + "/model.safetensors\n"),
            std::string::npos)
      << Output();
}

// Of many that take longer, none of them are.
TEST_F(SignalsTest, WhileManyWeightsAreSaved) {
  linear.chunk_elements = 1 << 19; // two batches
  files.on_transfer = [this](bool write) {
    if (write || moved > 0 || !std::filesystem::exists(options.state + "/model.safetensors.tmp"))
      return;
    moved = raise(SIGTERM) + 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  };
  const std::string weights = options.state + "/model.safetensors";
  ExpectInterrupted("interrupted before all weights were in `" + weights +
                    "`, which is as it was; step 4, the last one, is committed in `" +
                    options.state + "`, and the same command with --resume saves its weights");
  EXPECT_FALSE(std::filesystem::exists(weights));
  EXPECT_FALSE(std::filesystem::exists(weights + ".tmp"));
  options.resume = true;
  EXPECT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(weights));
}

// When all is done a signal changes nothing: the last message is there, and so is the status.
TEST_F(SignalsTest, BehindTheLastStep) {
  struct Out {
    std::string text;
    bool raised = false;
  } out;
  cookie_io_functions_t functions = {};
  functions.write = [](void *cookie, const char *text, size_t size) -> ssize_t {
    auto &of = *static_cast<Out *>(cookie);
    of.text.append(text, size);
    if (of.text.find(" is committed in ") != std::string::npos && !std::exchange(of.raised, true))
      raise(SIGTERM);
    return ssize_t(size);
  };
  options.quiet = false;
  options.out = fopencookie(&out, "w", functions);
  EXPECT_EQ(Run(), absl::OkStatus());
  std::fclose(options.out);
  EXPECT_TRUE(out.raised);
  EXPECT_NE(out.text.find("weights saved to "), std::string::npos) << out.text;
}

} // namespace
} // namespace boa
