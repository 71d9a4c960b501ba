//===- template_test.cpp - Errors and limits of templates -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/template/template.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <ctime>
#include <thread>
#include <vector>

using namespace boa;
using ::testing::HasSubstr;

namespace {

jinja::Value Input() {
  auto input = jinja::Value::FromJson(
      R"({"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": true})");
  return *std::move(input);
}

absl::StatusOr<Rendered> Render(absl::string_view text, const RenderOptions &options = {}) {
  auto chat = Template::Parse(text, "chat.jinja");
  if (!chat.ok())
    return chat.status();
  return chat->Render(Input(), options);
}

std::string Error(absl::string_view text, const RenderOptions &options = {}) {
  return std::string(Render(text, options).status().message());
}

// What is wrong, the line's number, the line itself, and the place in it.
TEST(Template, BrokenTemplates) {
  EXPECT_EQ(Error("{% for m in messages %}\n{{ m.content }}\n"),
            "`chat.jinja`, line 2: expected `{% endfor %}` for line 1, found the end of the "
            "template\n  {{ m.content }}\n                 ^");
  EXPECT_EQ(Error("{% if a %}\n  {% endfor %}"),
            "`chat.jinja`, line 2: expected `elif`, `else`, `endif` for line 1, found `endfor`\n"
            "  {% endfor %}\n     ^");
  EXPECT_EQ(Error("{{ messages | tojsn }}"),
            "`chat.jinja`, line 1: no filter `tojsn`; did you mean `tojson`?\n"
            "  {{ messages | tojsn }}\n                ^");
  EXPECT_EQ(Error("{{ messages is defned }}"),
            "`chat.jinja`, line 1: no test `defned`; did you mean `defined`?\n"
            "  {{ messages is defned }}\n                 ^");
  EXPECT_EQ(
      Error("a\n{% include 'b' %}"),
      "`chat.jinja`, line 2: no statement `include`; there are break, call, continue, filter, "
      "for, generation, if, macro, set, with\n  {% include 'b' %}\n     ^");
  EXPECT_EQ(Error("{{ messages[0].content + 1 }}"),
            "`chat.jinja`, line 1: `+` of a `str` and a `int`; `~` joins any values as texts\n"
            "  {{ messages[0].content + 1 }}\n                         ^");
  EXPECT_EQ(Error("{{ mesages[0].content }}"), "`chat.jinja`, line 1: `mesages` is not defined\n"
                                               "  {{ mesages[0].content }}\n            ^");
  EXPECT_EQ(Error("{{ messages[0].tool.name }}"),
            "`chat.jinja`, line 1: a `dict` without `tool`\n"
            "  {{ messages[0].tool.name }}\n                     ^");
  EXPECT_EQ(
      Error("{% set d = [] %}{{ d.append(1) }}"),
      "`chat.jinja`, line 1: `append` changes a `list`, which a template cannot; use `+` or a "
      "namespace\n  {% set d = [] %}{{ d.append(1) }}\n                             ^");
  EXPECT_EQ(Error("{{ 'a' if }}"), "`chat.jinja`, line 1: expected an expression, found `}}`\n"
                                   "  {{ 'a' if }}\n            ^");
  EXPECT_EQ(Error("{{ (1, [2) }}"), "`chat.jinja`, line 1: expected `]`, found `)`\n"
                                    "  {{ (1, [2) }}\n           ^");
  EXPECT_EQ(Error("{{ strftime_now('%Y') }}"),
            "`chat.jinja`, line 1: `strftime_now` needs a date, and none is given\n"
            "  {{ strftime_now('%Y') }}\n                 ^");
  EXPECT_EQ(
      Error("{% for x in messages recursive %}{% endfor %}"),
      "`chat.jinja`, line 1: recursive loops are not done; a macro that calls itself does the "
      "same\n  {% for x in messages recursive %}{% endfor %}\n                       ^");
}

// A template's own refusal is told apart from its faults.
TEST(Template, Refuses) {
  const absl::Status status = Render("\n{{ raise_exception('roles must alternate') }}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "`chat.jinja`, line 2: the template refuses this: roles must alternate\n"
            "  {{ raise_exception('roles must alternate') }}\n                    ^");
}

// Of a long line, only what is near is shown. Control characters of it do not reach a terminal.
TEST(Template, ErrorsOfLongLines) {
  EXPECT_EQ(Error(std::string(500, 'x') + "\x1b{{ nofilter | frst }}" + std::string(500, 'y')),
            "`chat.jinja`, line 1: no filter `frst`; did you mean `first`?\n  ..." +
                std::string(25, 'x') + "\\x1b{{ nofilter | frst }}" + std::string(53, 'y') +
                "...\n" + std::string(48, ' ') + "^");
}

TEST(Template, RefusesTexts) {
  EXPECT_EQ(Error("a\xff"), "`chat.jinja`: byte 1 is no UTF-8");
  EXPECT_EQ(Error(std::string((1 << 20) + 1, 'a')), "`chat.jinja`: a template of more than 1 MiB");
}

// A feature of Python that is missing here is an error. It never renders another text.
TEST(Template, NotDone) {
  RenderOptions dated;
  dated.now.emplace();
  dated.now->tm_mday = 1;
  const std::pair<const char *, const char *> cases[] = {
      {"{{ '{} {1}'.format(1, 2) }}", "a pattern with `{}` and with numbers such as `{0}`"},
      {"{{ '{0} {}'.format(1, 2) }}", "a pattern with `{}` and with numbers such as `{0}`"},
      {"{{ '{-1}'.format(1) }}", "no value for `{-1}`"},
      {"{{ self }}", "a `TemplateReference` has no text"},
      {"{{ lipsum() }}", "`lipsum` is not done: it makes texts at random"},
      {"{{ 1.5 | round(-400, 'ceil') }}", "`ceil` does not round to -400 digits"},
      {"{{ 1.5 | round(400, 'floor') }}", "`floor` does not round to 400 digits"},
      {"{{ 1.7e308 | round(-308) }}", "the rounded number is too large"},
      {"{{ 9223372036854775807 | round(-1) }}", "a number of more than 64 bits"},
      {"{{ 9223372036854775807 | round(-19) }}", "a number of more than 64 bits"},
      {"{{ strftime_now('%9999999d') }}", "`strftime_now` makes a text of more than 4096 bytes"},
      {"{{ strftime_now('%%%Z') }}", "`strftime_now` has no `%Z`"},
      {"{{ strftime_now('a' * 257) }}", "a format of more than 256 bytes"},
      {"{{ range(3) }}", "a range has no text; use `| list`"},
      {"{{ namespace() }}", "a `Namespace` has no text"},
      {"{{ 'a'.upper }}", "a `function` has no text"},
      {"{{ '\\N{BULLET}' }}", "an escape that no string has"},
      {"{{ '7❶'.isdigit() }}", "`isdigit` is not done for `❶`"},
      {"{{ '½漢'.isnumeric() }}", "`isnumeric` is not done for `漢`"},
      {"{{ 'a'.encode() }}", "a `str` without `encode`"},
      {"{{ 1.5.is_integer() }}", "a `float` without `is_integer`"},
      {"{% block a %}{% endblock %}", "no statement `block`"},
      {"{% autoescape true %}{% endautoescape %}", "no statement `autoescape`"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_THAT(Error(text, dated), HasSubstr(message)) << text;
  EXPECT_EQ(Render("{{ strftime_now('') }}{{ strftime_now('%%Z%4000d') | length }}", dated)->text,
            "4002");
  EXPECT_TRUE(Render("{{ " + std::string(1000, 'a') + " }}").ok());
  EXPECT_THAT(Error("{{ " + std::string(1001, 'a') + " }}"),
              HasSubstr("`chat.jinja`, line 1: a name of more than 1000 bytes"));
}

// Work takes steps by its size. Each of these takes more than so many, and less than all.
TEST(Template, Steps) {
  constexpr int64_t kSize = 1 << 16;
  std::string text;
  for (int64_t i = 0; i < kSize / 2; ++i)
    text += "\u00e9";
  const jinja::Value input = jinja::Value::Mapping({{jinja::Value("x"), jinja::Value(text)}});
  const auto takes_more = [&](int64_t steps, const std::string &body) {
    const auto chat = Template::Parse(body, "chat.jinja");
    ASSERT_TRUE(chat.ok()) << chat.status();
    RenderOptions options;
    EXPECT_TRUE(chat->Render(input, options).ok()) << chat->Render(input, options).status();
    options.steps = steps;
    EXPECT_THAT(std::string(chat->Render(input, options).status().message()), HasSubstr("steps"))
        << body;
  };
  // A text that is copied, read by its characters, or changed.
  for (const char *copied : {"'%.1s' % x", "'a' ~ x", "x | string"})
    takes_more(kSize / 64, absl::StrCat("{% set y = ", copied, " %}"));
  takes_more(kSize / 64 * 2, "{% set y = x.startswith((x, 'a')) %}");
  const absl::string_view reads =
      "x | length; x | wordcount; x.isalpha(); x.isspace(); "
      "x[-1]; x[32000]; x[32000:]; x[:32000]; x.find('no'); x.rfind('no'); "
      "'no' in x; x.count('no'); x.count(''); x.splitlines(); x.split('no'); "
      "x.replace('no', ''); x.partition('no'); x.startswith('a', 1); x.strip(); "
      "x | trim; x | truncate(9); x | truncate(32000); x | indent; x.zfill(9); "
      "x.ljust(9); '%.32000s' % x; '%9s' % x; x % (); x.format(); x | e";
  for (const absl::string_view read : absl::StrSplit(reads, "; "))
    takes_more(kSize / 16, absl::StrCat("{% set y = ", read, " %}"));
  for (const char *changed :
       {"x | upper", "x | lower", "x | title", "x | capitalize", "x.title()", "x.casefold()",
        "x.swapcase()", "x | tojson", "{x: 1} | tojson", "[x] | string", "x.split()", "x | float",
        "x | int", "x.islower()", "x is upper", "[x] | sort", "[x] | unique", "[x] | max",
        "{x: 1} | dictsort"})
    takes_more(kSize / 4, absl::StrCat("{% set y = ", changed, " %}"));
  takes_more(kSize / 16 * 8, "{% set y = x.strip('abcdefghijklmno') %}");
  takes_more(kSize / 2, "{% set y = x.count('\u00e9') %}");
  takes_more(30'000, "{% set y = ('%%' * 30000) % () %}");
  takes_more(30'000, "{% set y = ('{{' * 30000).format() %}");
  // Digits and remainders.
  const auto often = [](const std::string &body) {
    return absl::StrCat("{% for i in range(100) %}{% set y = ", body, " %}{% endfor %}");
  };
  takes_more(130'000, often("'%.1000f' % 1e300"));
  takes_more(100'000, often("'{:.1000f}'.format(1e-300)"));
  takes_more(30'000, often("1e-300 | round(310)"));
  takes_more(6'400, often("1e308 % 5e-324"));
  takes_more(6'400, often("1e308 // 1e-3"));
  // Lists and other objects.
  takes_more(16'000, "{% set y = range(10) | slice(1000) %}");
  takes_more(16'000, "{% set y = range(1000) | batch(1) %}");
  takes_more(16'000, "{% set y = ([[]] * 1000) | map('list') %}");
  takes_more(16'000, "{% set y = ([[]] * 1000) | map('map', 'list') %}");
  // Names that are looked for, and parameters.
  std::string parameters, with, end;
  for (int i = 0; i < 1000; ++i)
    absl::StrAppend(&parameters, i > 0 ? ", p" : "p", i);
  for (int i = 0; i < 50; ++i) {
    with += "{% with ";
    for (int j = 0; j < 15; ++j)
      absl::StrAppend(&with, j > 0 ? ", a" : "a", j, "=1");
    with += " %}";
    end += "{% endwith %}";
  }
  takes_more(30'000, "{% macro m(" + parameters + ") %}{% endmacro %}{{ m() }}");
  takes_more(5'000, with + often("x is defined") + end);
  // The digits that a number does not have take none.
  RenderOptions few;
  few.steps = 2000;
  EXPECT_EQ(
      Render("{% for i in range(99) %}{% set y = 1.5e300 | round(300) %}{% endfor %}{{ 1.5e300 "
             "| round(300) }} {{ ('\n' * 50) | indent(10000) | length }}",
             few)
          ->text,
      "1.5e+300 50");
}

// Whatever a template says, it ends, within a second of an optimised build on a quiet core.
TEST(Template, Limits) {
  RecordProperty("depends_on_time", "each ends within five seconds of a processor");
  const std::string loops = "{% for a in range(99999) %}";
  const auto many = [](int count, const std::string &text) {
    std::string out;
    for (int i = 0; i < count; ++i)
      out += text;
    return out;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {loops + loops + loops + "{% endfor %}{% endfor %}{% endfor %}", "steps"},
      {loops + loops + "{{ 'a' * 200 }}{% endfor %}{% endfor %}", "text of"},
      {"{{ 'a' * 1000000000 }}", "text of"},
      {loops + loops + "{% set x = '%.1000f' % 1e300 %}{% endfor %}{% endfor %}", "steps"},
      {"{% set x = 'a b ' * 500000 %}" + loops + "{% set y = x | title %}{% endfor %}", "steps"},
      {"{{ range(10) | slice(9000000) | list | length }}", "steps"},
      {"{{ [0] * 1000000000 }}", "steps"},
      {"{{ [0] | batch(9223372036854775807, '-') | list }}", "steps"},
      {"{% set ns = namespace(s='a') %}" + loops + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       "text of"},
      {"{% set ns = namespace(s=[0]) %}" + loops + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
       "steps"},
      {"{% set ns = namespace(s=[0]) %}" + loops + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}",
       "deeper than 100"},
      {"{% set ns = namespace(s=[0]) %}{% for a in range(90) %}{% set ns.s = [ns.s, ns.s] "
       "%}{% endfor %}{{ ns.s }}",
       "text of"},
      {"{% set ns = namespace(s=[0], t=[0]) %}{% for a in range(90) %}{% set ns.s = [ns.s, ns.s] "
       "%}{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
       "steps"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper than 600"},
      {"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper than 600"},
      {"{{ '%1000000000d' % 1 }}", "text of"},
      {"{{ '{:1000000000}'.format(1) }}", "text of"},
      {"{{ 'a'.center(1000000000) }}", "text of"},
      {"{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}", "text of"},
      {"{{ ('a\n' * 1000000) | indent(1000000) }}", "text of"},
      {"{{ [1, [2, [3]]] | tojson(indent=1000000000) }}", "text of"},
      {"{{ range(99999) | join('a' * 1000000) }}", "text of"},
      {"{{ range(99999) | unique | list }}", "steps"},
      {"{% set l = range(99999) | list %}" + loops + "{{ l.index(99998) }}{% endfor %}", "steps"},
      {"{% set s = 'a' * 600000 %}" + loops + "{{ s.find('b') }}{% endfor %}", "steps"},
      {"{% set s = 'a' * 600000 %}" + loops + "{% set t = s[1:] %}{% endfor %}", "steps"},
      {"{% set s = 'a' * 600000 %}{{ s.split('a') }}", "steps"},
      {"{{ ('a' * 500000).find('a' * 250000 ~ 'b') }}", "steps"},
      {"{{ ('a' * 500000).strip('b' * 400000 ~ 'a') }}", "steps"},
      {"{% set ns = namespace(g=[1]) %}" + loops +
           "{% set ns.g = [ns.g] | map('default') %}{% endfor %}",
       "deeper than 100"},
      {"{% set ns = namespace(l=1) %}" + loops +
           "{% for x in [ns.l] %}{% set ns.l = loop %}{% endfor %}{% endfor %}",
       "deeper than 100"},
      {"{% set ns = namespace(m=1) %}" + loops +
           "{% set p = ns.m %}{% macro f() %}{{ p }}{% endmacro %}{% set ns.m = f %}{% endfor %}",
       "steps"},
      {"{{ 'a' | map(" + many(700, "'map', ") + "'upper') | list }}", "nested deeper than 600"},
      {"{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}",
       "nested deeper than 200"},
      {"{{ " + std::string(100000, '-') + "1 }}", "nested deeper than 200"},
      {"{{ 1" +
           [] {
             std::string more;
             for (int i = 0; i < 1000; ++i)
               more += " + 1";
             return more;
           }() +
           " }}",
       "nested deeper than 200"},
      {many(1000, "{% if 1 %}"), "nested deeper than 100"},
  };
  // The first ones have the limits of a user; the others smaller ones, to save time.
  size_t number = 0;
  for (const auto &[text, message] : cases) {
    RenderOptions limits;
    if (++number > 6) {
      limits.steps = 1'000'000;
      limits.bytes = 1 << 20;
    }
    // The slowest takes 0.5 to 1.6 seconds, by machine and by what runs beside it.
    [[maybe_unused]] const std::clock_t begin = std::clock();
    EXPECT_THAT(Error(text, limits), HasSubstr(message)) << text.substr(0, 200);
#ifdef NDEBUG
    EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC) << text.substr(0, 200);
#endif
  }
  RenderOptions options;
  options.steps = 300;
  EXPECT_EQ(Error("{% for a in range(90) %}\n{{ 1 }}{% endfor %}", options),
            "`chat.jinja`, line 2: the template takes more than 300 steps\n"
            "  {{ 1 }}{% endfor %}\n     ^");
}

// What a namespace holds may hold it again: that is let go at the end (LeakSanitizer looks).
TEST(Template, Circles) {
  const auto out = Render("{% set ns = namespace() %}{% set ns.me = [ns] %}{% macro m() %}{{ x }}"
                          "{% endmacro %}{% set ns.m = m %}{% set x = 5 %}{{ ns.m() }}"
                          "{% for a in [1] %}{% set ns.loop = loop %}{% set _ = loop.changed(loop) "
                          "%}{% endfor %}{{ ns.loop.index }}");
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->text, "51");
}

// The place of a text that is used later is not known.
TEST(Template, GenerationWithinMacros) {
  const auto placed = Render("a{% generation %}b{% endgeneration %}");
  ASSERT_TRUE(placed.ok());
  ASSERT_EQ(placed->generated.size(), 1u);
  EXPECT_EQ(placed->generated[0].begin, 1u);
  EXPECT_EQ(placed->unplaced_line, 0);
  const auto unplaced =
      Render("{% macro m() %}\n{% generation %}b{% endgeneration %}{% endmacro %}{{ m() }}");
  ASSERT_TRUE(unplaced.ok());
  EXPECT_TRUE(unplaced->generated.empty());
  EXPECT_EQ(unplaced->unplaced_line, 2);
  // Outer ones come first.
  const auto nested =
      Render("\u00e9{% generation %}a{% generation %}b{% endgeneration %}{% endgeneration %}");
  ASSERT_TRUE(nested.ok());
  ASSERT_EQ(nested->generated.size(), 2u);
  EXPECT_EQ(nested->generated[0].begin, 2u);
  EXPECT_EQ(nested->generated[1].begin, 3u);
  EXPECT_EQ(nested->generated[1].end, 4u);
  EXPECT_TRUE(Template::Parse("{% generation %}{% endgeneration %}", "a")->has_generation());
  EXPECT_FALSE(Template::Parse("{{ 'generation' }}", "a")->has_generation());
}

TEST(Template, Inputs) {
  EXPECT_EQ(jinja::Value::FromJson("[1, 9223372036854775808]").status().message(),
            "the number 9223372036854775808 has more than 64 bits");
  EXPECT_EQ(jinja::Value::FromJson("[123456789012345678901234567890]").status().message(),
            "the number 123456789012345678901234567890 has more than 64 bits");
  EXPECT_EQ(jinja::Value::FromJson(R"({"a": 1, "a": 2})").status().message(),
            "the key `a` stands twice in one object");
  EXPECT_EQ(jinja::Value::FromJson(std::string(65, '[')).status().message(),
            "nested deeper than 64");
  EXPECT_EQ(jinja::Value::FromJson("[1,").status().message(), "no JSON at byte 4");
}

// One template serves any number of threads.
TEST(Template, Threads) {
  const auto chat = Template::Parse(
      "{% set ns = namespace(n=0) %}{% for m in messages * 100 %}{% set ns.n = ns.n + 1 %}"
      "{% endfor %}{{ ns.n }}",
      "chat.jinja");
  ASSERT_TRUE(chat.ok());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string &text : texts)
    threads.emplace_back([&] { text = chat->Render(Input())->text; });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(texts, ::testing::Each("100"));
}

} // namespace
