//===- DataChecker.cpp - What a training learns ---------------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of `data` and `validate`: a path, tokens(...), text(...), chat(...), or a mix of
// these. The result is a text that the runtime reads again (runtime/abi/sources.h). Files are
// opened when a run begins; a tokenizer must be there before.
//
//===----------------------------------------------------------------------===//
#include "frontend/Printer.h"
#include "frontend/Settings.h"

#include "runtime/abi/sources.h"
#include "runtime/abi/template_values.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace boa::frontend {

/// Relative to the file in which it stands. Of a pattern, nothing in the folder's name is special.
static std::string resolvePath(const Expr &path, bool isPattern, CheckContext context) {
  const Source &source = context.sources.get(path.location.file);
  const size_t slash = source.name.rfind('/');
  if (source.isOption || path.name[0] == '/' || slash == std::string::npos)
    return path.name;
  std::string folder;
  for (char c : source.name.substr(0, slash + 1)) {
    if (isPattern && (c == '*' || c == '?' || c == '[' || c == '\\'))
      folder += '\\';
    folder += c;
  }
  return folder + path.name;
}

bool SettingReader::readPath(const std::string &name, const Expr &expr, std::string &value) const {
  if (expr.kind != Expr::Kind::String || expr.name.empty()) {
    error(expr.location,
          "expected " + name + " to be the path of a file, \"...\", but found " + printExpr(expr));
    return false;
  }
  value = resolvePath(expr, /*isPattern=*/false, context);
  return true;
}

/// The kind of source that a call names; bytes if it names none.
static SourceKind kindOf(const Expr &expr) {
  if (expr.kind == Expr::Kind::Call)
    for (SourceKind kind : {SourceKind::tokens, SourceKind::text, SourceKind::chat})
      if (expr.name == CallOf(kind))
        return kind;
  return SourceKind::bytes;
}

bool SettingReader::readSource(const Expr &call, DataSource &source) const {
  const size_t errors = context.diagnostics.count();
  source.kind = kindOf(call);
  const SettingReader reader = readArguments(rowOf("train.data"), call);
  if (const Expr *files = reader.find("files")) {
    if (files->kind != Expr::Kind::String || files->name.empty())
      error(files->location,
            "expected files to be a path or a pattern, \"...\", but found " + printExpr(*files));
    else
      source.files = resolvePath(*files, /*isPattern=*/true, context);
  }
  if (const Expr *type = reader.find("type")) {
    const int word = findWord(rowOf("train.data.type"), *type);
    if (word >= 0)
      source.type = kTokenTypes[word];
  }
  if (const Expr *end = reader.find("end")) {
    const auto vocab = constants.find("vocab");
    const int64_t most = vocab == constants.end() ? INT32_MAX : vocab->second.value.integer;
    source.end = evaluateCount(*end, nullptr, constants, 0, std::max<int64_t>(most - 1, 0), "end",
                               context.diagnostics)
                     .value_or(-1);
  }
  reader.readTokenizer(source);
  return context.diagnostics.count() == errors;
}

bool SettingReader::readFlag(const char *name, bool absent) const {
  const Expr *flag = find(name);
  if (!flag)
    return absent;
  if (!flag->isName("true") && !flag->isName("false"))
    error(flag->location,
          std::string("expected ") + name + " to be true or false but found " + printExpr(*flag));
  return flag->isName("true");
}

/// A name, or the path of a file, which must be there.
void SettingReader::readTemplate(const Expr &form, DataSource &source) const {
  source.form = form.name;
  if (!source.has_template_file())
    return;
  source.form = resolvePath(form, /*isPattern=*/false, context);
  std::error_code failed;
  if (std::filesystem::is_regular_file(source.form, failed))
    return;
  std::string names;
  for (const char *name : kTemplateNames)
    names += (names.empty() ? "" : ", ") + std::string(name);
  error(form.location,
        "there is no template and no file " + source.form + "; the templates are " + names);
}

void SettingReader::readTokenizer(DataSource &source) const {
  if (const Expr *path = find("tokenizer");
      path && readPath("tokenizer", *path, source.tokenizer)) {
    std::error_code failed;
    if (!std::filesystem::is_regular_file(source.tokenizer, failed))
      error(path->location,
            "there is no file " + source.tokenizer + ", which would be a tokenizer");
  }
  source.special = readFlag("special", source.special);
  source.packed = readFlag("packed", source.packed);
  if (const Expr *form = find("template")) {
    if (form->kind != Expr::Kind::String || form->name.empty())
      error(form->location,
            "expected template to be a name, \"chatml\", or the path of a file, but found " +
                printExpr(*form));
    else
      readTemplate(*form, source);
  }
  if (const Expr *values = find("template_values")) {
    source.values = values->name;
    const std::string fault = values->kind == Expr::Kind::Object
                                  ? FaultOfTemplateValues(source.values)
                                  : kExpectedValues + (", but found " + printExpr(*values));
    if (!fault.empty())
      error(values->location, "template_values: " + fault);
  }
}

bool SettingReader::readMix(const Expr &call, std::vector<DataSource> &sources) const {
  if (call.arguments.empty() || call.arguments.size() > kMostSources) {
    error(call.location, "expected 1 to " + std::to_string(kMostSources) +
                             " sources in mix(...) but found " +
                             std::to_string(call.arguments.size()));
    return false;
  }
  for (const Argument &argument : call.arguments) {
    const Expr &part = *argument.value;
    const bool hasShare = !argument.keyword && part.kind == Expr::Kind::Binary && part.op == '*';
    if (!hasShare || kindOf(*part.operands[1]) == SourceKind::bytes) {
      error(argument.keyword ? argument.keyword->location : part.location,
            "expected a share and its source, 0.7 tokens(...), but found " +
                (argument.keyword ? argument.keyword->text + " = " : "") + printExpr(part));
      return false;
    }
    DataSource source;
    auto share = evaluate(*part.operands[0], constants, context.diagnostics);
    if (!share || !readSource(*part.operands[1], source))
      return false;
    source.share = share->real;
    if (WholeShares({source}).empty()) {
      error(part.operands[0]->location, "expected a share above 0 with at most six decimals but "
                                        "found " +
                                            printExpr(*part.operands[0]));
      return false;
    }
    sources.push_back(std::move(source));
  }
  return true;
}

void SettingReader::readData(const Setting &row, const Expr &expr, std::string &value) const {
  const std::string name(row.name());
  std::vector<DataSource> sources(1);
  bool good = true;
  if (kindOf(expr) != SourceKind::bytes) {
    good = readSource(expr, sources[0]);
  } else if (expr.kind == Expr::Kind::Call && expr.name == "mix") {
    sources.clear();
    good = readMix(expr, sources);
  } else if (expr.kind == Expr::Kind::String) {
    good = readPath(name, expr, sources[0].files);
  } else {
    return error(expr.location, "expected " + name +
                                    " to be the path of a file, \"...\", tokens(...), "
                                    "text(...), chat(...) or mix(...), but found " +
                                    printExpr(expr));
  }
  if (good)
    value = FormatSources(sources);
}

} // namespace boa::frontend
