//===- CommandLine.cpp - The commands of boa and their flags --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/CommandLine.h"

#include "frontend/Frontend.h"
#include "frontend/Habits.h"
#include "runtime/support/nearest.h"
#include "runtime/trainer/main.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "llvm/Support/FormatVariadic.h"

namespace boa {
namespace {

template <typename... Args> absl::Status refuse(const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

bool isModule(llvm::StringRef file) { return file.ends_with(".mlir"); }

std::string exampleLines(const DriverCommand &command) {
  std::string text;
  for (auto [line, does] : command.examples)
    absl::StrAppend(&text, "  ", llvm::formatv("{0,-48} {1}", line, does).str(), "\n");
  // Nothing behind the end of a line.
  return absl::StrReplaceAll(text, {{" \n", "\n"}});
}

std::string useLine(const DriverCommand &command, std::pair<const char *, const char *> use) {
  return llvm::formatv("{0,-33} {1}\n", absl::StrCat("boa ", command.name, " ", use.first),
                       use.second);
}

/// `train, compile and sample`.
std::string listCommands(const std::vector<std::string> &names) {
  std::vector<std::string> first(names.begin(), names.end() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), first.empty() ? "" : " and ", names.back());
}

/// `--set train.seed=7`, where people write --seed 7.
std::string settingHint(const std::string &name, const std::string &value) {
  std::string key = name, text;
  std::replace(key.begin(), key.end(), '-', '_');
  for (const std::string &path : frontend::settingsNamed(key))
    text += absl::StrCat(text.empty() ? "" : " or ", "--set ", path, "=",
                         value.empty() ? "VALUE" : value);
  return text.empty() ? "" : absl::StrCat("; what the spec says is changed by ", text);
}

absl::Status checkOperands(const DriverCommand &command, const Invocation &invocation) {
  const int count = invocation.operands.size();
  if (count < command.least)
    return refuse("boa ", command.name, ": expected ", command.expected);
  if (count > command.most)
    return refuse("boa ", command.name, ": expected ", command.expected, " but found `",
                  invocation.operands[command.most], "` too");
  if (command.operand == DriverCommand::Operand::word)
    for (const std::string &operand : invocation.operands)
      if (llvm::find(command.words, operand) == command.words.end()) {
        std::string near = NearestWord(operand, command.words);
        return refuse("boa ", command.name, ": expected ", command.expected, " but found `",
                      operand, "`", near.empty() ? "" : ", did you mean `" + near + "`?");
      }
  if (command.operand != DriverCommand::Operand::spec)
    return absl::OkStatus();
  if (llvm::count(invocation.operands, "-") > 1)
    return refuse("`-` is standard input, which can be read only once");
  // Of a module nothing is read but the file itself.
  auto module = llvm::find_if(invocation.operands, isModule);
  if (module == invocation.operands.end())
    return absl::OkStatus();
  if (count > 1)
    return refuse("`", *module, "` is a whole module: no other file can be given with it");
  if (!invocation.compile.overrides.empty())
    return refuse("--set ", invocation.compile.overrides[0], ": `", *module,
                  "` is a module and no spec: give the spec, or edit the module");
  if (invocation.emit == "ast")
    return refuse("--emit=ast: `", *module, "` is a module, which has no syntax tree");
  if (invocation.command == "fmt" || invocation.command == "check" || invocation.command == "plan")
    return refuse("boa ", invocation.command, ": `", *module, "` is a module and no spec");
  if (invocation.command == "sample")
    return refuse("boa sample compiles the model for one sequence at a time, from its spec: `",
                  *module, "` is a module");
  return absl::OkStatus();
}

/// What would be ignored beside something else.
absl::Status checkTogether(const Invocation &invocation) {
  const std::string &emit = invocation.emit;
  if (invocation.command == "compile") {
    if (emit.empty() && invocation.output.empty())
      return refuse("boa compile: expected -o TRAINER or --emit=KIND");
    if (!emit.empty() && !invocation.output.empty())
      return refuse("--emit writes to standard output and --output names a trainer: only one of "
                    "them can be given");
    if (!invocation.cpu.empty() && !emit.empty() && emit != "asm" && emit != "llvm")
      return refuse("--cpu: --emit=", emit, " is the same for every processor");
    if (!invocation.compile.dump.empty() && emit == "ast")
      return refuse("--dump-after-each: no pass runs before --emit=ast");
    if (!invocation.compile.target.empty() && emit == "ast")
      return refuse("--target: --emit=ast is the spec, whose machine names its device");
    if (invocation.compile.deviceCode == "emulated" && emit == "ptx")
      return refuse("--device-code=emulated: there is no PTX");
  }
  if (invocation.command == "sample") {
    if (!invocation.weights.empty() && !invocation.train.state.empty())
      return refuse("--weights and --state each name what is sampled: only one of them can be "
                    "given");
    if (invocation.sample.temperature == 0 && (invocation.topK || invocation.seed))
      return refuse(invocation.topK ? "--top-k" : "--seed",
                    ": with --temperature 0 nothing is drawn, the likeliest byte is taken");
    return absl::OkStatus();
  }
  return CheckTrainerOptions(invocation.train);
}

} // namespace

const std::vector<DriverCommand> &commands() {
  using Operand = DriverCommand::Operand;
  constexpr int kMany = 1000;
  const char *spec = "a spec file, for example examples/gpt.boa, or - for standard input";
  static const std::vector<DriverCommand> table = {
      {"train",
       {{"SPEC...", "compile, then train"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa train examples/gpt.boa", "train on this machine"},
        {"boa train examples/gpt.boa --resume", "go on from the last commit"},
        {"boa train examples/gpt.boa --set train.steps=50", "change one setting"}}},
      {"check",
       {{"SPEC...", "check a spec without compiling it"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa check examples/gpt.boa", "names, shapes, settings"},
        {"boa check examples/gpt.boa --set model.heads=5", "would this value do?"}}},
      {"fmt",
       {{"SPEC...", "lay specs out, in place"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa fmt model.boa", "rewrite it; comments stay"},
        {"boa fmt --check *.boa", "exit 1 if one would change"},
        {"boa fmt - < model.boa", "print the layout instead"}}},
      {"compile",
       {{"SPEC... -o TRAINER", "a stand-alone trainer"},
        {"SPEC... --emit=KIND", "one stage of the program, on stdout"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa compile examples/gpt.boa -o gpt", "then ./gpt trains"},
        {"boa compile examples/gpt.boa --emit=storage", "where each byte is, and when"}}},
      {"simulate",
       {{"SPEC...", "compile, then run in virtual time"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa simulate examples/gpt175b.boa examples/eight-ssds.boa", ""}}},
      {"plan",
       {{"SPEC...", "choose the fastest plan for a machine"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa plan model.boa examples/eight-ssds.boa", "what a plan block gives stays"},
        {"boa plan model.boa machine.boa --write plan.boa", "the block as a file"}}},
      {"probe",
       {{"[--path DIR]...", "measure this machine, for simulate"}},
       0,
       0,
       "no argument; directories of SSDs are given with --path",
       Operand::word,
       {},
       {{"boa probe", "writes machine.boa"},
        {"boa probe --path /nvme0/state --path /nvme1/state", ""},
        {"boa simulate examples/gpt.boa machine.boa", "what a step takes here"}}},
      {"sample",
       {{"SPEC...", "text from trained weights"}},
       1,
       kMany,
       spec,
       Operand::spec,
       {},
       {{"boa sample examples/gpt.boa --length 500", "from the spec's state"},
        {"boa sample examples/gpt.boa --prompt 'And God'", "text to continue"}}},
      {"state",
       {{"DIR", "what the state of a training holds"}},
       1,
       1,
       "the directory of a state, as --state of boa train names it",
       Operand::directory,
       {},
       {{"boa state state", "its commits and files"},
        {"boa state state --check", "is every byte whole?"}}},
      {"help",
       {{"TOPIC", "settings, builtins, commands, pytorch"}},
       0,
       1,
       "a command or `settings`, `builtins`, `commands`, `reference` or `pytorch`",
       Operand::word,
       {"settings", "builtins", "commands", "reference", "pytorch", "train", "check", "fmt",
        "compile", "simulate", "plan", "probe", "sample", "state", "help", "completion"},
       {{"boa help settings", "what --set can change"},
        {"boa help builtins", "the functions of a model"},
        {"boa help pytorch", "PyTorch's names, and Boa's"}}},
      {"completion",
       {{"bash|zsh|fish", "a script: source <(boa completion bash)"}},
       1,
       1,
       "bash, zsh or fish",
       Operand::word,
       {"bash", "zsh", "fish"},
       {{"source <(boa completion bash)", "in this shell"}}},
  };
  return table;
}

const DriverCommand *findCommand(std::string_view name) {
  for (const DriverCommand &command : commands())
    if (name == command.name)
      return &command;
  return nullptr;
}

FlagTable flagsOf(Invocation &invocation) {
  const std::vector<std::string> specs = {"train", "compile", "simulate", "sample"},
                                 sample = {"sample"}, simulate = {"simulate"}, probe = {"probe"};
  CompileRequest &compile = invocation.compile;
  FlagTable table = {
      {{"train", "check", "compile", "simulate", "plan", "sample"},
       "set",
       0,
       "KEY=VALUE",
       "override a value of the spec: train.steps=50",
       TextsValue{&compile.overrides}},
      {specs, "target", 0, "DEVICE", "cpu or cuda, instead of the machine's device",
       WordValue{&compile.target, {"cpu", "cuda"}}},
      {specs, "device-code", 0, "KIND", "", WordValue{&compile.deviceCode, {"ptx", "emulated"}}},
      {specs, "block-rows", 0, "N", "", WholeValue{&compile.blockRows}},
      {specs, "dump-after-each", 0, "DIR", "write the program after every pass",
       DirectoryValue{&compile.dump}},
      {{"plan"}, "write", 0, "FILE", "where the plan block goes", FileValue{&invocation.output}},
      {{"compile"}, "output", 'o', "FILE", "where the trainer goes", FileValue{&invocation.output}},
      {{"compile"},
       "emit",
       0,
       "KIND",
       "ast, computation, model, step, storage, llvm, asm, ptx",
       WordValue{&invocation.emit,
                 {"ast", "computation", "model", "step", "storage", "llvm", "asm", "ptx"}}},
      {{"compile"},
       "cpu",
       0,
       "NAME",
       "processor to compile for (default: this one)",
       TextValue{&invocation.cpu}},
      {sample, "weights", 0, "FILE", "default: model.safetensors in the state",
       FileValue{&invocation.weights}},
      {sample, "prompt", 0, "TEXT", "text to continue (default: a new line)",
       TextValue{&invocation.sample.prompt}},
      {sample, "length", 0, "N", "bytes to add (default: 256)",
       WholeValue{&invocation.sample.length}},
      {sample, "temperature", 0, "T", "0: always the likeliest byte (default: 0.8)",
       RealValue{&invocation.sample.temperature, 0, 1000}},
      {sample, "top-k", 0, "K", "draw from the K likeliest bytes (default: all)",
       WholeValue{&invocation.topK, 1, "leave --top-k out to draw from all"}},
      {sample, "seed", 0, "N", "another seed, another text (default: 1)",
       WholeValue{&invocation.seed}},
      {{"fmt"}, "check", 0, "", "change no file; exit 1 if one would change", &invocation.check},
      {{"state"}, "check", 0, "", "read every byte and compare its checksum", &invocation.check},
  };
  for (Flag &flag : TrainerFlags(invocation.train))
    table.push_back(std::move(flag));
  const FlagTable more = {
      {simulate, "steps", 0, "N", "steps to run, the first among them (default: 3)",
       WholeValue{&invocation.simulate.steps, 1, "leave it out for three"}},
      {simulate, "kernels", 0, "FILE", "how long kernels take: a name and seconds a line",
       FileValue{&invocation.simulate.kernels}},
      {simulate, "metrics", 0, "FILE", "write one JSON object for each step",
       FileValue{&invocation.simulate.metrics}},
      {simulate, "trace", 0, "FILE", "write a timeline for ui.perfetto.dev",
       FileValue{&invocation.simulate.trace}},
      {probe, "path", 0, "DIR", "a state's directory, there or not yet (default: state)",
       DirectoriesValue{&invocation.probe.paths}},
      {probe, "output", 'o', "FILE", "where the machine goes (default: machine.boa)",
       FileValue{&invocation.probe.output}},
      {probe, "quick", 0, "", "in ten seconds, less exactly", &invocation.probe.quick},
  };
  table.insert(table.end(), more.begin(), more.end());
  return table;
}

absl::Status readCommandLine(int count, char **arguments, Invocation &invocation) {
  const DriverCommand *command = findCommand(invocation.command);
  if (!command) {
    std::vector<std::string> names;
    for (const DriverCommand &entry : commands())
      names.push_back(entry.name);
    std::string guess = NearestWord(invocation.command, names);
    return refuse("no command `", invocation.command, "`",
                  guess.empty() ? "" : absl::StrCat(", did you mean `", guess, "`?"),
                  "\n  commands: ", absl::StrJoin(names, ", "), "; `boa --help` explains");
  }
  // Settings may be given where a spec is.
  FlagHint hint;
  if (command->operand == DriverCommand::Operand::spec)
    hint = settingHint;
  auto operands = ReadFlags(flagsOf(invocation), "boa", invocation.command, count, arguments, hint);
  if (!operands.ok())
    return operands.status();
  invocation.operands = *std::move(operands);
  invocation.compile.files = invocation.operands;
  if (absl::Status status = checkOperands(*command, invocation); !status.ok())
    return status;
  if (absl::Status status = checkTogether(invocation); !status.ok())
    return status;
  if (!invocation.cpu.empty())
    invocation.compile.cpu = invocation.cpu;
  invocation.sample.top_k = invocation.topK.value_or(invocation.sample.top_k);
  invocation.sample.seed = invocation.seed.value_or(invocation.sample.seed);
  return absl::OkStatus();
}

std::string helpText() {
  std::string text = "usage: boa COMMAND [ARGUMENTS] [FLAGS]\n\n";
  for (const DriverCommand &command : commands())
    for (const auto &use : command.uses)
      text += "  " + useLine(command, use);
  text += "\nA SPEC is a file, or - for standard input. Alone:\n" +
          FlagHelp("--help", "this text; behind a command: its flags") +
          FlagHelp("--version", "which boa this is");
  Invocation none;
  FlagTable table = flagsOf(none);
  std::vector<std::vector<std::string>> groups;
  for (const Flag &flag : table)
    if (llvm::find(groups, flag.commands) == groups.end())
      groups.push_back(flag.commands);
  for (const auto &group : groups) {
    FlagTable part;
    for (const Flag &flag : table)
      if (flag.commands == group)
        part.push_back(flag);
    absl::StrAppend(&text, "\nflags of ", listCommands(group), ":\n", FlagsHelp(part, group[0]));
  }
  return text;
}

std::string helpText(const DriverCommand &command) {
  std::string text;
  for (const auto &use : command.uses)
    text += (text.empty() ? "usage: " : "       ") + useLine(command, use);
  Invocation none;
  return absl::StrCat(text, "\n", FlagsHelp(flagsOf(none), command.name),
                      FlagHelp("--help", "this text"), "\nexamples:\n", exampleLines(command));
}

namespace {

std::string commandsText() {
  std::string text;
  for (const DriverCommand &command : commands()) {
    for (const auto &use : command.uses)
      absl::StrAppend(&text, useLine(command, use));
    absl::StrAppend(&text, exampleLines(command), "\n");
  }
  return text + "`boa COMMAND --help` lists the flags of a command.\n";
}

std::string builtinsText() {
  std::string text = "Functions of a model. Shapes are checked before anything runs.\n";
  for (const frontend::BuiltinInfo &builtin : frontend::listBuiltins())
    absl::StrAppend(&text, "\n", builtin.signature, "\n    ", builtin.help, "\n    ",
                    builtin.shapes, "\n");
  return text + "\na + b, a * b, 0.5 * x, x / 2\n    element by element; a parameter stands on "
                "the right\n\nstage.param\n    a parameter of another stage\n";
}

std::string habitsText() {
  std::string text = "Spellings of PyTorch and its trainers, and Boa's.\n";
  const std::pair<frontend::HabitKind, const char *> kinds[] = {
      {frontend::HabitKind::Word, "in a model"},
      {frontend::HabitKind::Sign, "signs"},
      {frontend::HabitKind::Function, "functions, methods and modules"},
      {frontend::HabitKind::Setting, "settings of a training"},
      {frontend::HabitKind::Value, "their values"}};
  for (auto [kind, title] : kinds) {
    absl::StrAppend(&text, "\n", title, ":\n");
    std::string spelling;
    for (const frontend::Habit &habit : frontend::habits())
      if (habit.kind == kind) {
        // Names of one meaning share a line.
        if (spelling == habit.spelling)
          absl::StrAppend(&text, ", ", habit.written);
        else
          absl::StrAppend(&text, spelling.empty() ? "" : "\n      " + spelling + "\n", "  ",
                          habit.written);
        spelling = habit.spelling;
      }
    absl::StrAppend(&text, "\n      ", spelling, "\n");
  }
  return text;
}

std::string settingsText() {
  std::string text = "Settings of a spec, as --set takes them: --set train.steps=50. Arguments of "
                     "a\ncall are set where the spec makes that call. Settings of "
                     "train.parameters and\nplan.activations stand in a spec only.\n";
  for (const frontend::SettingInfo &setting : frontend::listSettings()) {
    absl::StrAppend(&text, "\n", setting.path);
    if (!setting.calls.empty())
      absl::StrAppend(&text, "  (of ", setting.calls, ")");
    absl::StrAppend(&text, "\n    ", setting.values, "; ",
                    setting.isRequired
                        ? "required"
                        : absl::StrCat("default ", setting.fallback,
                                       setting.absent.empty() ? "" : ": " + setting.absent),
                    "\n    ", setting.help, "\n");
  }
  return text + "\nmodel.NAME\n    a constant of the model\n";
}

/// frontend/REFERENCE.md.
std::string referenceText() {
  std::string text = "<!-- Written by `boa help reference`. -->\n\n# Settings, builtins and "
                     "commands\n\n## Settings\n\n`--set PATH=VALUE` takes these paths. An "
                     "argument of a call is set where the spec makes that call. Settings of "
                     "`train.parameters` and `plan.activations` stand in a spec only.\n\n"
                     "| path | values | default | |\n|---|---|---|---|\n";
  auto cell = [](const std::string &part) { return absl::StrReplaceAll(part, {{"|", "\\|"}}); };
  for (const frontend::SettingInfo &setting : frontend::listSettings())
    absl::StrAppend(&text, "| `", setting.path, "`",
                    setting.calls.empty() ? "" : absl::StrCat(" (of ", setting.calls, ")"), " | ",
                    cell(setting.values), " | ",
                    setting.isRequired
                        ? "required"
                        : absl::StrCat("`", setting.fallback, "`",
                                       setting.absent.empty() ? "" : ": ", setting.absent),
                    " | ", cell(setting.help), " |\n");
  absl::StrAppend(&text, "\n## Builtins\n\n| signature | shapes | |\n|---|---|---|\n");
  for (const frontend::BuiltinInfo &builtin : frontend::listBuiltins())
    absl::StrAppend(&text, "| `", builtin.signature, "` | `", builtin.shapes, "` | ", builtin.help,
                    " |\n");
  absl::StrAppend(&text, "\n## Commands\n");
  for (const DriverCommand &command : commands())
    absl::StrAppend(&text, "\n    ",
                    absl::StrReplaceAll(absl::StripTrailingAsciiWhitespace(helpText(command)),
                                        {{"\n", "\n    "}, {"\n\n", "\n\n    "}}),
                    "\n");
  return text;
}

} // namespace

std::string topicText(const std::string &topic) {
  return topic == "settings"    ? settingsText()
         : topic == "reference" ? referenceText()
         : topic == "builtins"  ? builtinsText()
         : topic == "commands"  ? commandsText()
                                : habitsText();
}

} // namespace boa
