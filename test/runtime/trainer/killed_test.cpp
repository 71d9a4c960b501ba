//===- killed_test.cpp - Runs that are processes of their own ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each is a process of linear_trainer.cpp. Its losses do not depend on how often it was killed.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/trainer/trainer_fixture.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace boa {
namespace {

using nlohmann::json;

class KilledTest : public TrainerTest {
protected:
  /// Starts the run as a process; what it prints goes to the file "output".
  pid_t Start(const std::vector<std::string> &flags) {
    std::vector<std::string> arguments = {BOA_LINEAR_TRAINER,
                                          "data=" + linear.data,
                                          "tier=" + linear.tier,
                                          "type=" + linear.weight_type,
                                          std::string("delayed=") + (linear.delayed ? "1" : "0"),
                                          "commit=" + std::to_string(linear.commit_every),
                                          "evaluate=" + std::to_string(linear.evaluate_every),
                                          "clip=" + std::to_string(linear.clip),
                                          "--state=" + options.state,
                                          "--metrics=" + options.metrics,
                                          "--steps=" + std::to_string(linear.steps)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const std::string output = scratch.path("output");
    const pid_t process = fork();
    if (process == 0) {
      const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      dup2(file, 1);
      dup2(file, 2);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    return process;
  }

  /// Waits until the metrics have a line for `step` and sends `signal`. False
  /// if the process ended before.
  bool SignalAtStep(pid_t process, int64_t step, int signal) {
    for (;;) {
      const std::vector<json> lines = ReadLines(options.metrics);
      if (!lines.empty() && lines.back()["step"].get<int64_t>() >= step)
        return kill(process, signal) == 0;
      siginfo_t info = {};
      waitid(P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid == process)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  static int Wait(pid_t process) {
    int status = 0;
    waitpid(process, &status, 0);
    return status;
  }
};

// Kills at many moments, the process's own commit among them.
// A text, and a mix whose samples the commits count.
TEST_F(KilledTest, ResumesBitForBitAfterKill) {
  const std::string text = linear.data;
  const std::string mix =
      absl::StrCat("mix(0.7 tokens(\"", text, "\", uint8), 0.3 tokens(\"",
                   scratch.Write("more", linear::Text(9000).substr(500)), "\", uint8, end = 7))");
  for (const char *type : {"f32", "bf16"})
    for (bool delayed : {false, true}) {
      SCOPED_TRACE(std::string(type) + (delayed ? ", delayed" : ""));
      linear.data = type[0] == 'f' ? text : mix;
      linear.weight_type = type;
      linear.delayed = delayed;
      linear.commit_every = 7;
      // A delayed update takes the clipping factor of the step that it is of.
      linear.clip = delayed ? 0.05 : 0;
      linear.evaluate_every = 20;
      linear.steps = 200;
      const std::vector<double> expected = Unbroken();
      ASSERT_EQ(expected.size(), 200u);
      std::vector<std::string> flags;
      for (int64_t step : {3, 50, 98, 151}) {
        const pid_t process = Start(flags);
        SignalAtStep(process, step, SIGKILL);
        Wait(process);
        flags = {"--resume"};
      }
      EXPECT_EQ(Wait(Start(flags)), 0) << Output();
      EXPECT_EQ(ReadLosses(options.metrics), expected);
      EXPECT_EQ(ReadWhole(options.state + "/model.safetensors"),
                ReadWhole(scratch.path("unbroken") + "/model.safetensors"));
      std::filesystem::remove_all(options.state);
      std::filesystem::remove_all(scratch.path("unbroken"));
      std::filesystem::remove(options.metrics);
    }
}

TEST_F(KilledTest, RefusesASecondTrainer) {
  linear.steps = 1000000;
  const pid_t process = Start({});
  EXPECT_TRUE(SignalAtStep(process, 1, 0)) << Output();
  options.resume = true;
  options.metrics.clear();
  const std::string error = Error();
  // The other one may have the memory, too.
  linear.tier = "device";
  linear.chunk_elements = int64_t{1} << 44;
  const std::string large = Error();
  kill(process, SIGKILL);
  Wait(process);
  EXPECT_NE(error.find(options.state), std::string::npos) << error;
  EXPECT_NE(error.find("in use by process"), std::string::npos) << error;
  EXPECT_NE(large.find("in use by process"), std::string::npos) << large;
  EXPECT_NE(Error().find("of this machine's memory"), std::string::npos) << Error();
}

} // namespace
} // namespace boa
