//===- Import.cpp - Models of Hugging Face, in and out --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/models/Import.h"

#include "dialect/Boa.h"
#include "passes/model/CanonicalText.h"
#include "passes/target/runtime/Descriptor.h"
#include "runtime/abi/parts.h"
#include "runtime/abi/program.h"
#include "runtime/abi/sources.h"
#include "runtime/io/file_system.h"
#include "runtime/io/folder_file.h"
#include "runtime/io/new_file.h"
#include "runtime/io/new_outputs.h"
#include "runtime/state/computation.h"
#include "runtime/support/interrupt.h"
#include "runtime/support/printable.h"
#include "runtime/support/units.h"
#include "runtime/tokenizer/chat.h"
#include "runtime/trainer/create_state.h"
#include "runtime/trainer/output_checks.h"
#include "runtime/weights/adapter_folder.h"
#include "runtime/weights/folder_files.h"
#include "runtime/weights/given_weights.h"
#include "runtime/weights/model_config.h"
#include "runtime/weights/parameter_names.h"
#include "runtime/weights/rest_file.h"
#include "tools/CompiledProgram.h"
#include "tools/HeldAdapters.h"
#include "tools/models/ImportData.h"
#include "tools/models/SpecText.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <map>
#include <set>
#include <vector>

namespace boa {
namespace {

/// The last part of a path, as a comment may have it.
std::string lastName(const std::string &path) {
  std::error_code error;
  std::filesystem::path whole = std::filesystem::absolute(path, error).lexically_normal();
  if (whole.filename().empty())
    whole = whole.parent_path();
  std::string name = whole.filename().string();
  for (char &c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '?';
  return name;
}

/// The program of a spec, for its names, its shapes and the text of its computation.
absl::StatusOr<Program> describeSpec(const CompileRequest &request) {
  Compiler compiler;
  auto module = compiler.load(request);
  if (!module.ok())
    return module.status();
  const std::string computation = printCanonicalText(**module);
  if (absl::Status status = compiler.lower(**module, request, Phase::storage); !status.ok())
    return withAdvice(status, compiler, request);
  absl::StatusOr<Program> program = ParseProgram(describeProgram(**module));
  if (program.ok())
    program->computation.text = computation;
  return program;
}

struct Function {
  std::string text;                         // printCanonicalText, which leaves the names out
  std::map<std::string, std::string> names; // of the tensors, by parameter: "block.q_w"
};

absl::StatusOr<Function> functionOf(const CompileRequest &request) {
  Compiler compiler;
  auto module = compiler.load(request);
  if (!module.ok())
    return module.status();
  Function function = {printCanonicalText(**module), {}};
  (*module)->walk([&](ParamOp param) {
    auto group = param->getParentOfType<GroupOp>();
    function.names[(group.getSymName() + "." + param.getSymName()).str()] =
        param.getExternal().value_or("").str();
  });
  return function;
}

/// Names the results and the next command. The notes go to standard error.
void report(const ImportOptions &options, const ModelConfig &config, int64_t context,
            const std::string &fit, const Program &program, const std::vector<std::string> &unused,
            const std::string &noTokenizer) {
  double parameters = 0;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters)
      parameters += double(group.count) * double(parameter.elements());
  llvm::outs() << "wrote " << options.spec << ": " << config.architecture << ", "
               << FormatCount(parameters) << " parameters, context " << context << "\n";
  if (!options.state.empty())
    llvm::outs() << "wrote " << options.state << ": step 0, with the weights of "
                 << Printable(options.folder) << "\n";
  if (!fit.empty())
    llvm::outs() << "data: " << fit << "; boa data " << options.spec << " shows what is learnt\n";
  llvm::outs() << (options.data.empty() ? "set `data` in its train block, then: " : "then: ")
               << "boa train " << options.spec
               << (options.state.empty() ? " --weights " + Printable(options.folder)
                                         : " --state " + options.state + " --resume")
               << "\n";
  for (const std::string &note : config.notes)
    llvm::errs() << "note: " << Printable(note) << "\n";
  if (!noTokenizer.empty())
    llvm::errs() << "note: " << Printable(noTokenizer) << "\n";
  if (!unused.empty())
    llvm::errs() << "note: " << config.architecture << " does not use, and the spec has not: "
                 << Printable(absl::StrJoin(unused, ", ")) << "\n";
}

std::string notExported(const std::string &folder) {
  return absl::StrCat("interrupted; no model was exported to `", folder, "`");
}

/// Says what was written, too.
absl::Status exportAdapters(const Program &program, const ModelConfig &config,
                            const AdapterFolder &options, bool bf16) {
  absl::StatusOr<WrittenAdapters> written = ExportAdapterFolder(program, config, options, bf16);
  if (!written.ok())
    return IfInterrupted(written.status(), notExported(options.folder));
  llvm::outs() << "wrote " << options.folder << ": adapters of " << written->modules
               << " modules of " << Printable(config.architecture) << ", rank " << written->rank
               << (written->saved ? absl::StrCat(", and ", written->saved, " whole modules") : "")
               << ", " << FormatBytes(written->bytes) << " of " << (bf16 ? "bf16" : "f32") << "\n";
  if (options.base.empty())
    llvm::errs() << "note: adapter_config.json names no model: --base NAME does\n";
  return absl::OkStatus();
}

} // namespace

absl::Status importFolder(const ImportOptions &options) {
  absl::StatusOr<ModelConfig> config = ReadModelConfig(options.folder);
  if (!config.ok())
    return config.status();
  ImportedData data;
  if (!options.data.empty()) {
    absl::StatusOr<ImportedData> read =
        readImportedData(options.data, options.folder, options.spec, *config);
    if (!read.ok())
      return read.status();
    data = *std::move(read);
  }
  const int64_t context =
      options.context.value_or(options.data.empty() ? defaultContext(*config) : data.context);
  if (absl::Status status = checkContext(*config, context); !status.ok())
    return status;

  // The spec, with the names that the folder has.
  SpecOptions spec;
  spec.source = lastName(options.folder);
  spec.context = context;
  spec.lora = options.lora;
  std::vector<std::string> unused;
  absl::StatusOr<WeightFiles> files = WeightFiles::Open(options.folder);
  if (!files.ok())
    return files.status();
  std::vector<std::string> tensors;
  for (const auto &[name, tensor] : files->tensors()) {
    tensors.push_back(name);
    if (isUnused(*config, name))
      unused.push_back(name);
  }
  readNames(*config, tensors, spec);
  if (config->family->masked) {
    absl::StatusOr<int64_t> token = FindMaskToken(options.folder);
    if (!token.ok())
      return token.status();
    spec.maskToken = *token;
  }
  spec.hasEpochs = !options.data.empty() && data.hasEpochs;
  spec.data = data.call;
  const absl::StatusOr<std::string> text = writeSpec(*config, spec);

  // All of it must compile and fit before anything is written.
  spec.data = data.checked;
  const absl::StatusOr<std::string> checked = writeSpec(*config, spec);
  if (!text.ok() || !checked.ok())
    return text.ok() ? checked.status() : text.status();
  CompileRequest request;
  request.files = {options.spec};
  request.texts = {{options.spec, *checked}};
  absl::StatusOr<Program> program = describeSpec(request);
  if (!program.ok())
    return program.status();
  if (auto given = GivenWeights::Open(*program, options.folder, unused, Adapters::may_be_new);
      !given.ok())
    return given.status();
  CompiledProgram compiled;
  Kernels kernels = nullptr;
  absl::Status status = CheckOutputs({{"-o", options.spec}}, {});
  if (status.ok())
    status = CheckNewFile({"-o", options.spec}, /*directory=*/true);
  if (status.ok() && !options.state.empty())
    status = compiled.compile(request);
  if (status.ok() && !options.state.empty())
    status = compiled.find(kernels);
  // Until here, a signal ends the process at once. From now on it says what was kept.
  InterruptsUntilExit();
  const std::string beside = FolderBeside(options.spec);
  NewOutputs outputs;
  outputs.Add(options.spec);
  outputs.AddFolder(beside, IsNameOfFolder);
  if (status.ok())
    status = WriteSmallFile(options.spec, *text);
  if (!status.ok())
    return status;

  absl::StatusOr<std::string> noTokenizer = CopySmallFiles(options.folder, beside);
  if (!noTokenizer.ok())
    return noTokenizer.status();
  absl::StatusOr<std::string> json = ModelConfigText(options.folder);
  if (!json.ok())
    return json.status();
  status = IfInterrupted(WriteRest(*files, *program, unused, absl::StrCat(beside, "/", kRestFile)),
                         "interrupted; the import is not complete, the same command begins again");
  if (status.ok())
    status = WriteSmallFile(absl::StrCat(beside, "/config.json"), *json);
  if (!status.ok())
    return status;

  if (!options.state.empty()) {
    TrainerOptions training;
    training.state = options.state;
    training.weights = options.folder;
    training.unwanted = unused;
    training.sources = {options.spec};
    status = CreateState(compiled.program, kernels, training, InterruptsUntilExit());
    if (!status.ok())
      return status;
  }
  outputs.Keep();
  // A folder without a tokenizer is what its owner made of it, a GGUF file always has one.
  report(options, *config, context, describeFit(data, context), *program, unused,
         IsGgufName(options.folder) ? *noTokenizer : "");
  return absl::OkStatus();
}

std::string listFamilies() {
  std::string text;
  for (const Family &family : Families())
    absl::StrAppendFormat(&text, "%-24s%-24s%s\n", family.title, family.architecture,
                          family.limits);
  for (std::string::size_type blank; (blank = text.find(" \n")) != text.npos;)
    text.erase(blank, 1);
  return text + "\nOf GGUF files: " + GgufArchitectures() +
         ". Any other model is a spec by hand (boa help reference),\nwhose parameters name their "
         "tensors behind `as`.\n";
}

/// The configuration and the spec must be one function of the same tensors, but for adapters.
static absl::Status checkFunction(const ModelConfig &config, const Program &program,
                                  const CompileRequest &request, const std::string &like) {
  if (absl::Status status = checkContext(config, program.model.context); !status.ok())
    return absl::Status(status.code(),
                        absl::StrCat("`", like, "/config.json`: ", status.message()));
  CompileRequest base = request, expected;
  base.base = true;
  absl::StatusOr<Function> found = functionOf(base);
  if (!found.ok())
    return found.status();
  std::vector<std::string> tensors;
  for (const auto &[parameter, tensor] : found->names)
    tensors.push_back(tensor);
  SpecOptions spec;
  spec.context = program.model.context;
  readNames(config, tensors, spec);
  const absl::StatusOr<std::string> text = writeSpec(config, spec);
  if (!text.ok())
    return text.status();
  expected.files = {"config.json"};
  expected.texts = {{"config.json", *text}};
  absl::StatusOr<Function> wanted = functionOf(expected);
  if (!wanted.ok())
    return wanted.status();
  const auto refuse = [&](const char *what, const std::vector<std::string> &differences) {
    return absl::FailedPreconditionError(absl::StrCat("the spec ", what, " than the model of `",
                                                      like, "/config.json`:\n  ",
                                                      absl::StrJoin(differences, "\n  ")));
  };
  if (wanted->text != found->text)
    return refuse("computes another function", DescribeDifferences(wanted->text, found->text));
  std::vector<std::string> differences;
  for (const auto &[parameter, tensor] : wanted->names)
    if (const std::string &named = found->names[parameter];
        named != tensor && named != tensor + "[:]") // all rows are the first ones
      differences.push_back(absl::StrCat(parameter, ": expected as \"", tensor, "\" but found ",
                                         named.empty() ? "none" : "\"" + named + "\""));
  return differences.empty() ? absl::OkStatus() : refuse("names other tensors", differences);
}

/// The tensors of the vocabulary that stages have, with their dimensions. Where the embedding and
/// the head are one, two of the same number of dimensions cannot both go out.
static std::map<size_t, std::set<std::string>> tensorsOfVocabulary(const Program &program) {
  std::map<size_t, std::set<std::string>> tensors;
  for (const Group &group : program.groups)
    for (const Parameter &parameter : group.parameters) {
      const std::vector<int64_t> shape = Parts(group, parameter).WholeShape();
      if (!group.layer && !parameter.external.empty() && !shape.empty() &&
          shape[0] == program.model.vocab)
        tensors[shape.size()].insert(ExternalOf(0, parameter).name);
    }
  return tensors;
}

/// Of a model that no table has, the tensors of its folder are compared, by names and shapes.
static absl::Status checkTensors(const ModelConfig &config, const Program &program,
                                 const std::string &like) {
  auto given = GivenWeights::Open(program, like, {}, Adapters::may_be_new);
  if (!given.ok())
    return absl::Status(
        given.status().code(),
        absl::StrCat(given.status().message(),
                     "\n  no table says what the model computes: ", config.unknown));
  // An export has it once. Without a tie transformers would have a random one.
  if (const auto &copies = (*given)->copies(); !copies.empty() && !config.Is("tied"))
    return absl::FailedPreconditionError(absl::StrCat(
        "`", like, "`: ", absl::StrJoin(copies, ", "),
        " is a copy of another tensor, and the spec has one parameter for both: expected "
        "\"tie_word_embeddings\": true in its config.json, or false there and a parameter for "
        "each"));
  // With a tie transformers would take one for both. An absent key is one in some families.
  if (config.values.value("tied", true))
    for (const auto &[dimensions, tensors] : tensorsOfVocabulary(program))
      if (tensors.size() > 1)
        return absl::FailedPreconditionError(
            absl::StrCat("the spec has a parameter each for ", absl::StrJoin(tensors, " and "),
                         ", but in `", like, "/config.json` \"tie_word_embeddings\" is ",
                         config.Is("tied") ? "true" : "absent, which may mean true",
                         ": expected one parameter for both, or false there"));
  return absl::OkStatus();
}

/// Where the rows are that no parameter holds: in a file of an import, or in the model itself.
static absl::Status findRest(const std::string &like, FolderExport &weights) {
  if (IsGgufName(like))
    return absl::OkStatus();
  const absl::Status there = CheckFolderFile(like, kRestFile);
  if (!there.ok() && !absl::IsNotFound(there))
    return there;
  weights.rows_of_rest = !there.ok();
  std::error_code error;
  if (there.ok())
    weights.rest = absl::StrCat(like, "/", kRestFile);
  else if (std::filesystem::exists(absl::StrCat(like, "/", kWeightsFile), error) ||
           std::filesystem::exists(absl::StrCat(like, "/", kWeightsIndex), error))
    weights.rest = like;
  return absl::OkStatus();
}

/// A template of a folder has no values of its own.
static void noteValues(const DataSource &chat) {
  if (!chat.values.empty())
    llvm::errs()
        << "note: the folder does not hold template_values = " << Printable(chat.values)
        << ", with which the model learnt: give them to the template whenever you ask it\n";
}

absl::Status exportFolder(const ExportOptions &options) {
  CompileRequest request = options.compile;
  request.purpose = Purpose::predict; // needs no plan
  request.unlimited = true;
  absl::StatusOr<Program> program = describeSpec(request);
  if (!program.ok())
    return program.status();
  nameHeldAdapters(options.compile, program->train, stderr);
  const std::string like = options.config.empty() ? FolderBeside(request.files[0]) : options.config;
  const auto namesFolder = [&](const absl::Status &status) {
    return absl::Status(status.code(),
                        absl::StrCat(status.message(),
                                     options.config.empty()
                                         ? "\n  --config FOLDER names the folder of the model: its "
                                           "config.json, its tokenizer and, of a spec by hand, "
                                           "its weights"
                                         : ""));
  };
  absl::StatusOr<ModelConfig> config = ReadAnyConfig(like);
  if (!config.ok())
    return namesFolder(config.status());
  if (options.weights.adapters && !HasAdapters(*program))
    return absl::FailedPreconditionError(
        "the spec has no adapters: expected adapters = lora(...) in its train block");
  if (config->family) {
    if (absl::Status status = checkFunction(*config, *program, request, like); !status.ok())
      return status;
  } else if (absl::Status status = checkTensors(*config, *program, like); !status.ok()) {
    return namesFolder(status);
  }

  absl::StatusOr<std::string> json = ModelConfigWithType(like, options.weights.bf16);
  if (!json.ok())
    return json.status();
  // A conversation with the model has the template with which it was trained.
  const DataSource chat = ChatOf(program->train.data);
  absl::StatusOr<std::string> jinja = chat.form.empty() ? "" : TemplateText(chat.form);
  if (!jinja.ok())
    return jinja.status();
  if (absl::Status status = CheckExportFolder(*program, options.folder, options.weights);
      !status.ok())
    return status;
  NewOutputs outputs;
  outputs.AddFolder(options.folder, IsNameOfFolder);
  InterruptsUntilExit(); // nothing was written until here
  const std::string state = options.state.empty() ? FolderOfState(program->machine) : options.state;
  if (options.weights.adapters) {
    absl::Status status = exportAdapters(*program, *config, {state, options.folder, options.base},
                                         options.weights.bf16);
    if (!status.ok())
      return status;
    outputs.Keep();
    noteValues(chat);
    return absl::OkStatus();
  }
  FolderExport weights = options.weights;
  if (absl::Status status = findRest(like, weights); !status.ok())
    return status;
  absl::StatusOr<int64_t> bytes =
      ExportFolder(SystemFiles(), *program, state, options.folder, weights);
  if (!bytes.ok())
    return IfInterrupted(bytes.status(), notExported(options.folder));
  absl::StatusOr<std::string> noTokenizer = CopySmallFiles(like, options.folder, *jinja);
  absl::Status status = noTokenizer.status();
  // It makes the folder complete.
  if (status.ok())
    status = WriteSmallFile(absl::StrCat(options.folder, "/config.json"), *json);
  if (!status.ok())
    return status;
  outputs.Keep();
  llvm::outs() << "wrote " << options.folder << ": " << Printable(config->architecture) << ", "
               << FormatBytes(*bytes) << " of " << (options.weights.bf16 ? "bf16" : "f32") << "\n";
  if (!noTokenizer->empty())
    llvm::errs() << "note: " << Printable(*noTokenizer) << "\n";
  noteValues(chat);
  if (!config->family)
    llvm::errs() << "note: no table has " << Printable(config->architecture)
                 << ": names and shapes of " << Printable(like)
                 << " were compared, not what the model computes\n";
  return absl::OkStatus();
}

} // namespace boa
