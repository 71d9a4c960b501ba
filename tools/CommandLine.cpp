//===- CommandLine.cpp - The commands of boa and their flags --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/CommandLine.h"

#include "frontend/Frontend.h"
#include "runtime/abi/template_values.h"
#include "runtime/support/nearest.h"
#include "runtime/trainer/main.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace boa {
namespace {

template <typename... Args> absl::Status refuse(const Args &...args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

bool isModule(llvm::StringRef file) { return file.ends_with(".mlir"); }

bool generates(const Invocation &invocation) {
  return invocation.command == "sample" || invocation.command == "chat";
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
  if (invocation.command == "chat" && llvm::is_contained(invocation.operands, "-"))
    return refuse("boa chat: `-` is standard input, which messages come from: give the spec as a "
                  "file");
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
  if (invocation.command == "fmt" || invocation.command == "check" ||
      invocation.command == "data" || invocation.command == "plan" ||
      invocation.command == "export")
    return refuse("boa ", invocation.command, ": `", *module, "` is a module and no spec");
  if (generates(invocation))
    return refuse("boa ", invocation.command,
                  " compiles the model for one sequence at a time, from its spec: `", *module,
                  "` is a module");
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
  if (invocation.list && (!invocation.operands.empty() || !invocation.output.empty()))
    return refuse("--list imports nothing: give it alone");
  if (invocation.command == "import" && !invocation.list && invocation.operands.empty())
    return refuse("boa import: expected the folder of a Hugging Face model, or a GGUF file");
  if (invocation.command == "import" && !invocation.list && invocation.output.empty())
    return refuse("boa import: expected -o SPEC");
  if (invocation.command == "export" && invocation.output.empty())
    return refuse("boa export: expected -o FOLDER");
  if (invocation.adapter && !invocation.shard.empty())
    return refuse("--shard: adapters are one file");
  if (!invocation.adapter && !invocation.base.empty())
    return refuse("--base: only an adapter names its model: add --adapter");
  if (generates(invocation)) {
    if (!invocation.weights.empty() && !invocation.train.state.empty())
      return refuse("--weights and --state each name what is sampled: only one of them can be "
                    "given");
    const bool topP = invocation.sample.top_p < 1;
    if (invocation.sample.temperature == 0 && (invocation.topK || topP || invocation.seed))
      return refuse(invocation.topK ? "--top-k"
                    : topP          ? "--top-p"
                                    : "--seed",
                    ": with --temperature 0 nothing is drawn, the likeliest byte is taken");
    const bool isText = invocation.command == "sample" && !invocation.sample.chat;
    if (isText && !invocation.sample.form.empty())
      return refuse("--template: without --chat there is no message");
    const std::optional<std::string> &values = invocation.sample.values;
    if (isText && values)
      return refuse("--template-values: without --chat there is no message");
    if (const std::string fault = values ? FaultOfTemplateValues(*values) : ""; !fault.empty())
      return refuse("--template-values: ", fault);
    return absl::OkStatus();
  }
  const StoredPlanOptions &stored = invocation.stored;
  if (stored.again && !invocation.train.resume)
    return refuse("--replan chooses another plan for a state: give it together with --resume");
  if ((stored.choose || stored.again) && llvm::any_of(invocation.operands, isModule))
    return refuse(stored.again ? "--replan" : "--plan",
                  ": a module has its plan already: give the spec");
  return CheckTrainerOptions(invocation.train);
}

} // namespace

FlagTable flagsOf(Invocation &invocation) {
  const std::vector<std::string> specs = {"train",  "compile", "simulate",
                                          "sample", "chat",    "evaluate"},
                                 sample = {"sample"}, chat = {"chat"}, both = {"sample", "chat"},
                                 simulate = {"simulate"}, probe = {"probe"};
  CompileRequest &compile = invocation.compile;
  FlagTable table = {
      {{"train", "check", "data", "compile", "simulate", "plan", "sample", "chat", "evaluate",
        "export"},
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
      {{"plan"},
       "tokens",
       0,
       "N",
       "how long so many take: 300B, 15T",
       AmountValue{&invocation.summary.tokens}},
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
      {both, "weights", 0, "FILE", "file, folder or DIR[@COMMIT], instead of --state",
       FileValue{&invocation.weights}},
      {sample, "prompt", 0, "TEXT", "text to continue (default: a new line)",
       TextValue{&invocation.sample.prompt}},
      {sample, "chat", 0, "", "the prompt is a message, the text an answer to it",
       &invocation.sample.chat},
      {both, "template", 0, "NAME", "or its file, of messages (default: the data's)",
       TextValue{&invocation.sample.form}},
      {both, "template-values", 0, "JSON", "variables of the template (default: the data's)",
       TextValue{&invocation.sample.values}},
      {chat, "system", 0, "TEXT", "the system message", TextValue{&invocation.system}},
      {chat, "length", 0, "N", "tokens of an answer, at most (default: to its end)",
       WholeValue{&invocation.answerLength, 1, "leave it out for no limit"}},
      {sample, "length", 0, "N", "bytes, or tokens, to add (default: 256)",
       WholeValue{&invocation.sample.length}},
      {both, "temperature", 0, "T", "0: always the likeliest (default: 0.8)",
       RealValue{&invocation.sample.temperature, 0, 1000}},
      {both, "top-k", 0, "K", "draw from the K likeliest (default: all)",
       WholeValue{&invocation.topK, 1, "leave --top-k out to draw from all"}},
      {both, "top-p", 0, "P", "draw from the likeliest of share P (default: all)",
       RealValue{&invocation.sample.top_p, 0, 1}},
      {both, "stop", 0, "TEXT", "end the text before TEXT; may be repeated",
       TextsValue{&invocation.sample.stop}},
      {both, "no-cache", 0, "", "compute the whole context again for each token",
       &invocation.noCache},
      {sample, "logits", 0, "FILE", "", FileValue{&invocation.sample.logits}},
      {sample, "timing", 0, "", "print time, memory and bytes read", &invocation.sample.timing},
      {chat, "timing", 0, "", "print what each turn computes, and its time",
       &invocation.sample.timing},
      {both, "seed", 0, "N", "another seed, another text (default: 1)",
       WholeValue{&invocation.seed}},
      {{"fmt"}, "check", 0, "", "change no file; exit 1 if one would change", &invocation.check},
      {{"import"},
       "output",
       'o',
       "SPEC",
       "where the spec goes; small files go beside it",
       FileValue{&invocation.output}},
      {{"import"},
       "state",
       0,
       "DIR",
       "where a state with its weights goes (default: none)",
       DirectoryValue{&invocation.train.state}},
      {{"import"},
       "data",
       0,
       "DATA",
       "what to train on: talks.jsonl, \"*.txt\", tokens(...)",
       FileValue{&invocation.train.data}},
      {{"import"},
       "context",
       0,
       "N",
       "tokens of a sequence (default: as data need, or 1024)",
       WholeValue{&invocation.context, 1, "leave it out for the default"}},
      {{"import"}, "lora", 0, "", "train adapters instead of the model", &invocation.lora},
      {{"import"}, "list", 0, "", "which models, and their limits", &invocation.list},
      {{"export"},
       "output",
       'o',
       "FOLDER",
       "where the model goes: a new folder",
       DirectoryValue{&invocation.output}},
      {{"export"},
       "type",
       0,
       "TYPE",
       "f32 or bf16 (default: f32)",
       WordValue{&invocation.type, {"f32", "bf16"}}},
      {{"export"},
       "shard",
       0,
       "SIZE",
       "at most so much in a file (default: 5GB)",
       TextValue{&invocation.shard}},
      {{"export"},
       "config",
       0,
       "FOLDER",
       "the model: config.json, tokenizer (default: of import)",
       DirectoryValue{&invocation.config}},
      {{"export"}, "adapter", 0, "", "the adapters alone, as PEFT has them", &invocation.adapter},
      {{"export"},
       "base",
       0,
       "NAME",
       "the model that they adapt, for adapter_config.json",
       TextValue{&invocation.base}},
      {{"data"},
       "json",
       0,
       "",
       "JSON for scripts; the keys never change",
       &invocation.describe.json},
      {{"data"},
       "show",
       0,
       "N",
       "sequences of step 1 to show as text (default: 2)",
       WholeValue{&invocation.describe.sequences}},
      {{"state"}, "check", 0, "", "read every byte and compare its checksum", &invocation.check},
  };
  for (Flag &flag : TrainerFlags(invocation.train))
    table.push_back(std::move(flag));
  for (Flag &flag : TokenizeFlags(invocation.tokenize))
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
      {{"simulate", "plan"},
       "report",
       0,
       "FILE",
       "write a page with pictures (HTML)",
       FileValue{&invocation.report}},
      {{"train"},
       "plan",
       0,
       "",
       "choose the plan for this machine; commits hold it",
       &invocation.stored.choose},
      {{"train"}, "replan", 0, "", "with --resume: choose the plan anew", &invocation.stored.again},
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
  // It opens a state that is there.
  if (invocation.command == "evaluate")
    invocation.train.resume = true;
  if (absl::Status status = checkTogether(invocation); !status.ok())
    return status;
  if (!invocation.cpu.empty())
    invocation.compile.cpu = invocation.cpu;
  invocation.sample.top_k = invocation.topK.value_or(invocation.sample.top_k);
  invocation.sample.tokenizer = invocation.describe.tokenizer = invocation.tokenize.tokenizer;
  invocation.tokenize.texts = invocation.operands;
  invocation.sample.seed = invocation.seed.value_or(invocation.sample.seed);
  return absl::OkStatus();
}

} // namespace boa
