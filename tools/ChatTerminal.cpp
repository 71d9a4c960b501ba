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
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <langinfo.h>
#include <optional>
#include <poll.h>
#include <string>
#include <termios.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boa {
namespace {

constexpr char kHelp[] =
    "/reset, /clear   begin a new conversation; a system message stays\n"
    "/quit, /exit     end\n"
    "/help            this text\n"
    "A line that ends with \\ goes on in the next one, and lines that are pasted\n"
    "together are one message. Ctrl-C stops an answer. Ctrl-D ends.\n";
constexpr double kSlowToken = 0.5; // seconds
constexpr int kPasteMs = 50;       // lines of a paste come faster, and nobody types so fast

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

// Signal handlers reach nothing but globals.
volatile std::sig_atomic_t notedSignal = 0;
termios modesBefore; // of the terminal, before a line is read

/// Stops the process as usual, with the terminal as the shell needs it. Returns when it goes on.
void stopProcess() {
  tcsetattr(STDIN_FILENO, TCSANOW, &modesBefore);
  struct sigaction own, usual = {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &usual, &own);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &own, nullptr);
}

/// A signal may come just before the terminal is read. Then an alarm ends that read.
void noteSignal(int signal) {
  const int error = errno;
  if (signal != SIGALRM)
    notedSignal = signal;
  if (signal == SIGTSTP)
    stopProcess();
  if (notedSignal != 0)
    alarm(1);
  errno = error;
}

/// While it lives, these signals end the wait for a line, and no more; SIGTSTP stops the process
/// before. An InterruptGuard may live inside.
class PromptSignals {
public:
  explicit PromptSignals(std::initializer_list<int> signals) {
    struct sigaction action = {};
    action.sa_handler = noteSignal;
    sigemptyset(&action.sa_mask);
    // stopProcess raises its own signal. There is no SA_RESTART: the read of the terminal ends.
    action.sa_flags = SA_NODEFER;
    for (int signal : signals) {
      struct sigaction before;
      sigaction(signal, nullptr, &before);
      if (before.sa_handler == SIG_IGN)
        continue;
      previous.emplace_back(signal, before);
      sigaction(signal, &action, nullptr);
    }
  }
  ~PromptSignals() {
    alarm(0);
    for (const auto &[signal, before] : previous)
      sigaction(signal, &before, nullptr);
  }
  PromptSignals(const PromptSignals &) = delete;
  PromptSignals &operator=(const PromptSignals &) = delete;

private:
  std::vector<std::pair<int, struct sigaction>> previous;
};

/// Whether there is input within this time. A terminal in its usual mode has only whole lines.
bool isWaiting(int milliseconds) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, milliseconds) == 1 && (input.revents & POLLIN) != 0;
}

/// Whether more was pasted than the line that was read. The rest may be no whole line, and the
/// terminal must not show it: the editor will.
bool isPasteGoingOn() {
  termios modes;
  if (tcgetattr(STDIN_FILENO, &modes) != 0)
    return false;
  termios unedited = modes;
  unedited.c_lflag &= ~tcflag_t(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &unedited);
  const bool goesOn = isWaiting(kPasteMs);
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
  return goesOn;
}

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
    // Until the process ends, so that no later signal takes the place of its exit status.
    static const PromptSignals &signals = *new PromptSignals({SIGINT, SIGTERM, SIGHUP, SIGALRM});
    (void)signals;
    // No file keeps the messages: this path can hold no history.
    constexpr char kNoHistory[] = "/";
    editor.emplace("boa", kNoHistory, stdin, isatty(STDOUT_FILENO) ? stdout : stderr);
    // Tabs are text, as in a program that is pasted.
    editor->setCompleter([](llvm::StringRef, size_t) {
      return llvm::LineEditor::CompletionAction{
          llvm::LineEditor::CompletionAction::AK_Insert, "\t", {}};
    });
  }

  /// The next message. None at the end, and behind a signal.
  std::optional<std::string> read() {
    std::optional<PromptSignals> stop;
    if (editor && tcgetattr(STDIN_FILENO, &modesBefore) == 0)
      stop.emplace({SIGTSTP});
    // Lines that were typed during the answer are a message each.
    const bool isPrompt = editor && !isWaiting(0);
    std::optional<std::string> message;
    while (true) {
      std::optional<std::string> line = readLine(message ? "... " : "> ");
      if (signal() != 0)
        return std::nullopt;
      if (!line) {
        if (message && editor)
          std::cerr << "\n"; // the answer begins a line
        return message;
      }
      const bool isPasted = isPrompt && isPasteGoingOn();
      const bool goesOn = !isPasted && absl::EndsWith(*line, "\\");
      if (goesOn)
        line->pop_back();
      if (message)
        absl::StrAppend(&*message, "\n", *line);
      else
        message = *std::move(line);
      if (!isPasted && !goesOn)
        return message;
    }
  }
  /// The signal that ended the last read or write; 0: none. Of a terminal that is gone it is
  /// SIGHUP, which may come later than the error of a read or write, or be ignored.
  int signal() const {
    pollfd terminal = {STDIN_FILENO, 0, 0};
    const bool isGone = editor && poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLHUP) != 0;
    return notedSignal == 0 && isGone ? SIGHUP : notedSignal;
  }
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
        isOver = true;
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
    if (signal == SIGTSTP)
      return absl::OkStatus(); // a new prompt stands behind the shell's lines
    if (signal != SIGINT)
      return InterruptedError(signal, "interrupted");
    std::cerr << "\n";
    isOver = interrupted;
    interrupted = true;
    if (!isOver)
      std::cerr << "Ctrl-C again, Ctrl-D or /quit ends\n";
    return absl::OkStatus();
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
    const int signal = guard && guard->interrupted() ? guard->signal() : messages.signal();
    if (signal != 0 && signal != SIGINT)
      return InterruptedError(signal, "interrupted");
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
