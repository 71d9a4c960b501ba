//===- ChatTerminal.cpp - A conversation in the terminal ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/ChatTerminal.h"

#include "runtime/support/interrupt.h"
#include "runtime/support/printable.h"
#include "runtime/support/printable_stream.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "llvm/LineEditor/LineEditor.h"

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstring>
#include <iostream>
#include <iterator>
#include <langinfo.h>
#include <optional>
#include <string>
#include <unistd.h>

namespace boa {
namespace {

constexpr char kHelp[] =
    "/reset, /clear   begin a new conversation; a system message stays\n"
    "/quit, /exit     end\n"
    "/help            this text\n"
    "A line that ends with \\ goes on in the next one. Ctrl-C stops an answer. "
    "Ctrl-D ends.\n";
constexpr double kSlowToken = 0.5; // seconds

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

volatile std::sig_atomic_t notedSignal = 0;
/// It may come just before the terminal is read, and then ends no read. An alarm ends that read.
void noteSignal(int signal) {
  if (signal != SIGALRM)
    notedSignal = signal;
  if (notedSignal != 0)
    alarm(1);
}

/// While it lives, these signals end the wait for a line, and no more. An InterruptGuard may live
/// inside.
class PromptSignals {
public:
  PromptSignals() {
    notedSignal = 0;
    struct sigaction action = {};
    action.sa_handler = noteSignal;
    sigemptyset(&action.sa_mask);
    // Without SA_RESTART: the read of the terminal ends.
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &previous[i]);
      if (previous[i].sa_handler != SIG_IGN)
        sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~PromptSignals() {
    alarm(0);
    for (size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &previous[i], nullptr);
  }

private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
  struct sigaction previous[std::size(kSignals)];
};

/// Messages of a person at a terminal, or of a file.
class Messages {
public:
  explicit Messages(bool isTerminal) {
    if (!isTerminal)
      return;
    // The editor takes characters apart as the locale says.
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
      std::setlocale(LC_CTYPE, "C.UTF-8");
    signals.emplace();
    // What was said is in no file: no history can be written here.
    constexpr char kNoHistory[] = "/";
    editor.emplace("boa", kNoHistory, stdin, isatty(STDOUT_FILENO) ? stdout : stderr);
  }

  /// The next message. None at the end, and behind a signal.
  std::optional<std::string> read() {
    std::string message;
    for (bool goesOn = false;; goesOn = true) {
      std::optional<std::string> line = readLine(goesOn ? "... " : "> ");
      if (!line)
        return goesOn && signal() == 0 ? std::optional(message) : std::nullopt;
      if (!absl::EndsWith(*line, "\\"))
        return message + *line;
      line->back() = '\n';
      message += *line;
    }
  }
  /// The signal that ended the last read; 0: none.
  int signal() const { return notedSignal; }
  /// It is dealt with.
  void clearSignal() {
    notedSignal = 0;
    alarm(0);
  }

private:
  std::optional<std::string> readLine(const char *prompt) {
    if (editor) {
      editor->setPrompt(prompt);
      return signal() == 0 ? editor->readLine() : std::nullopt;
    }
    std::string line;
    if (!std::getline(std::cin, line))
      return std::nullopt;
    if (absl::EndsWith(line, "\r"))
      line.pop_back();
    return line;
  }

  std::optional<PromptSignals> signals;
  std::optional<llvm::LineEditor> editor;
};

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

class TerminalConversation {
public:
  TerminalConversation(Chat &chat, const Program &program, bool timing)
      : chat(chat), program(program), timing(timing), messages(isTerminal) {}

  absl::Status run() {
    if (isTerminal)
      std::cerr << "A conversation with `" << Printable(program.model.name) << "`, of at most "
                << program.model.context << " tokens. /help lists commands, Ctrl-D ends.\n";
    while (!isOver) {
      const std::optional<std::string> message = messages.read();
      absl::Status status;
      if (messages.signal() != 0)
        status = interrupt();
      else if (!message)
        end();
      else if (absl::StripAsciiWhitespace(*message).empty())
        continue;
      else if (!isCommand(*message))
        status = turn(*message);
      if (!status.ok())
        return status;
    }
    if (!isTerminal && refused > 0)
      return absl::FailedPreconditionError(
          absl::StrCat(refused, refused == 1 ? " message was" : " messages were", " not answered"));
    return absl::OkStatus();
  }

private:
  /// At the prompt.
  absl::Status interrupt() {
    const int signal = messages.signal();
    messages.clearSignal();
    if (signal != SIGINT)
      return InterruptedError(signal, "interrupted");
    std::cerr << "\n";
    isOver = interrupted;
    interrupted = true;
    if (!isOver)
      std::cerr << "Ctrl-C again, Ctrl-D or /quit ends\n";
    return absl::OkStatus();
  }

  /// The input is over. The prompt of a shell begins a line.
  void end() {
    isOver = true;
    if (isTerminal)
      std::cerr << "\n";
  }

  /// Carries a command out. A path, or a slash with more words, is a message.
  bool isCommand(const std::string &message) {
    interrupted = false;
    const absl::string_view word = absl::StripTrailingAsciiWhitespace(message);
    if (word.size() < 2 || word[0] != '/' ||
        !std::all_of(word.begin() + 1, word.end(), absl::ascii_isalpha))
      return false;
    if (word == "/reset" || word == "/clear") {
      chat.Reset();
      std::cerr << "a new conversation\n";
    } else if (word == "/quit" || word == "/exit")
      isOver = true;
    else if (word == "/help")
      std::cerr << kHelp;
    else
      refuse(absl::StrCat("no command ", word, "; there are /reset, /quit and /help"));
    return true;
  }

  void refuse(const std::string &why) {
    ++refused;
    std::cerr << "error: " << Printable(why) << "\n";
  }

  absl::Status turn(const std::string &message) {
    std::optional<InterruptGuard> guard;
    if (isTerminal)
      guard.emplace();
    if (guard && isSlow)
      SetStopNote("\nstops behind this token; Ctrl-C again ends boa\n");
    if (const absl::Status status = chat.Ask(message); !status.ok()) {
      refuse(absl::StrCat(status.message(), absl::IsResourceExhausted(status)
                                                ? ": it is not kept. A shorter one may fit; "
                                                  "/reset begins a new conversation"
                                                : ""));
      return absl::OkStatus();
    }
    const absl::StatusOr<ChatAnswer> answer = write();
    if (guard && guard->interrupted() && guard->signal() != SIGINT)
      return InterruptedError(guard->signal(), "interrupted");
    if (!answer.ok())
      return answer.status();
    if (!std::cout)
      return absl::UnavailableError("writing the answer failed");
    comment(*answer);
    return absl::OkStatus();
  }

  /// The answer, and the end of its last line.
  absl::StatusOr<ChatAnswer> write() {
    if (!isatty(STDOUT_FILENO)) {
      absl::StatusOr<ChatAnswer> answer = chat.Answer(std::cout);
      std::cout << std::endl;
      return answer;
    }
    PrintableStream terminal(std::cout);
    absl::StatusOr<ChatAnswer> answer = chat.Answer(terminal);
    terminal.Finish();
    return answer;
  }

  void comment(const ChatAnswer &answer) {
    interrupted = answer.end == ContinuedText::End::signal;
    // The terminal showed ^C in the line where the answer stood.
    if (interrupted && (answer.text.empty() || answer.text.back() == '\n'))
      std::cerr << "\n";
    isSlow = answer.seconds > kSlowToken * double(answer.tokens);
    if (interrupted)
      std::cerr << "note: stopped"
                << (answer.is_kept || !answer.refusal.ok()
                        ? ""
                        : " before the answer: the message is not kept")
                << "; Ctrl-C again ends\n";
    else if (answer.is_full)
      std::cerr << "note: the context of " << program.model.context
                << " tokens is full, and the answer ends here."
                << (answer.is_kept
                        ? " The conversation is kept, but has no room for more: /reset begins "
                          "a new one\n"
                        : "\n");
    else if (answer.end == ContinuedText::End::length)
      std::cerr << "note: the answer ends at " << answer.tokens << " tokens, as --length says\n";
    if (!answer.refusal.ok())
      std::cerr << "note: neither the message nor the answer is kept: "
                << Printable(std::string(answer.refusal.message())) << "\n";
    if (timing)
      std::cerr << absl::StrFormat(
          "%d tokens computed in %.3f s, %d cached; then %d tokens in %.3f s\n", answer.computed,
          answer.first_seconds, answer.tokens_before - answer.computed, answer.tokens,
          answer.seconds);
  }

  Chat &chat;
  const Program &program;
  const bool timing;
  const bool isTerminal = isatty(STDIN_FILENO);
  Messages messages;
  int64_t refused = 0;
  bool isOver = false;
  bool interrupted = false; // the last thing was Ctrl-C
  bool isSlow = false;
};

} // namespace

absl::Status converse(Chat &chat, const Program &program, bool timing) {
  return TerminalConversation(chat, program, timing).run();
}

} // namespace boa
