//===- template.h - Templates of conversations, in Jinja ------ -*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Renders as jinja2 does with the settings of transformers. A template reaches nothing but its
// input, and has limits: whatever it says, it ends.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_RUNTIME_TEMPLATE_TEMPLATE_H
#define BOA_RUNTIME_TEMPLATE_TEMPLATE_H

#include "runtime/template/value.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boa {

namespace jinja {
struct Program;
}

struct RenderOptions {
  /// What strftime_now shows. A template that asks for it is refused if it is not given.
  std::optional<std::tm> now;
  int64_t steps = 10'000'000; // a second at most; 64 bytes of text count as one
  int64_t bytes = 64 << 20;   // of the output, and of each text on the way
  int depth = 600;            // of statements and expressions within each other, in macros, too
};

struct Rendered {
  struct Range {
    size_t begin, end; // bytes of the text
  };
  std::string text;
  /// What `{% generation %}` encloses, in order.
  std::vector<Range> generated;
  /// The line of a `{% generation %}` within a macro or another block whose text is used later, so
  /// that its place is not known; 0: there is none.
  int64_t unplaced_line = 0;
};

class Template {
public:
  /// `name` is how errors name it.
  static absl::StatusOr<Template> Parse(absl::string_view text, absl::string_view name);
  /// `globals` is a mapping: messages, tools, add_generation_prompt, bos_token and so on. Errors
  /// are FailedPrecondition if the template itself refuses the conversation (raise_exception),
  /// ResourceExhausted at a limit, and else InvalidArgument. Any thread may call this.
  absl::StatusOr<Rendered> Render(const jinja::Value &globals,
                                  const RenderOptions &options = {}) const;
  /// Whether it says which parts a model writes.
  bool has_generation() const;
  /// Whether it has a variable of this name, given or of its own.
  bool HasVariable(absl::string_view name) const;
  /// Whether the word stands anywhere in it: as a variable, an attribute or a text.
  bool Mentions(absl::string_view word) const;
  /// As errors name it.
  const std::string &name() const;
  const std::string &text() const;

private:
  std::shared_ptr<const jinja::Program> program;
};

} // namespace boa

#endif // BOA_RUNTIME_TEMPLATE_TEMPLATE_H
