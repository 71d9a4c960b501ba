//===- conversation.cpp - Tokens and targets of a conversation ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/conversation.h"

#include "runtime/abi/sources.h"
#include "runtime/support/printable.h"
#include "runtime/support/refuse.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace boa {

using jinja::Kind;
using jinja::Value;

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &local));
}

/// A date at midnight. Nothing if the text is none.
static std::optional<std::tm> DateOf(const std::string &text) {
  std::tm date = {};
  if (std::sscanf(text.c_str(), "%d-%d-%d", &date.tm_year, &date.tm_mon, &date.tm_mday) != 3)
    return std::nullopt;
  date.tm_year -= 1900;
  date.tm_mon -= 1;
  date.tm_isdst = -1;
  std::mktime(&date); // finds the day of the week
  return date;
}

/// The text of a token as a file writes it. A decoder may put a space before it.
static std::string ContentOf(const Tokenizer &tokenizer, int32_t id) {
  for (const AddedToken &token : tokenizer.added_tokens())
    if (token.id == id)
      return token.content;
  return tokenizer.TextOf(id);
}

absl::Status ConversationEncoder::Open(const ChosenTemplate &chosen) {
  absl::StatusOr<TemplateValues> given = ReadTemplateValues(chosen.values);
  if (!given.ok())
    return Refuse("template_values: ", given.status().message());
  values = *std::move(given);
  ChatSetting setting = {
      tokenizer->chat().tokens, DateOf(chosen.date.empty() ? Today() : chosen.date), {}, values};
  for (auto [name, id] :
       {std::pair("bos_token", tokenizer->bos()), std::pair("eos_token", tokenizer->eos())})
    if (id >= 0)
      setting.tokens.emplace_back(name, ContentOf(*tokenizer, id));
  std::vector<int32_t> added;
  for (const AddedToken &token : tokenizer->added_tokens()) {
    setting.added.push_back(token.content);
    if (!absl::StripAsciiWhitespace(token.content).empty())
      added.push_back(token.id);
  }
  // A token in a value is no token that the template writes.
  Conversation tried;
  tried.values = values;
  const absl::StatusOr<std::string> mark = ContentMarks(*tokenizer, added).Mark(tried, "");
  if (!mark.ok())
    return mark.status();
  setting.values = std::move(tried.values);
  absl::StatusOr<std::vector<TemplateSource>> found = FindTemplates(chosen.form, tokenizer->chat());
  if (!found.ok())
    return found.status();
  if (found->empty())
    no_form = Refuse("`", source, "`: it has no chat template; template = \"NAME\" in chat(...) ",
                     "names one of ", absl::StrJoin(kTemplateNames, ", "), ", or a file of Jinja");
  for (size_t i = 0; i < found->size() && no_form.ok(); ++i) {
    absl::StatusOr<Template> jinja = Template::Parse((*found)[i].text, (*found)[i].name);
    no_form = jinja.status();
    if (jinja.ok())
      (i == 0 ? plain : with_tools) = std::make_shared<ChatForm>(*std::move(jinja), setting);
  }
  if (!chosen.form.empty() && !no_form.ok())
    return no_form;
  for (const auto *form : {&plain, &with_tools})
    if (!mark->empty() && *form && absl::StrContains((*form)->end().value_or(""), *mark))
      return Refuse("template_values: `", (*form)->jinja().name(),
                    "` ends an answer with a value, and a special token in a value is text, so "
                    "the model would not learn where to end: write the token into the template");
  FindStructure();
  return absl::OkStatus();
}

absl::StatusOr<ConversationEncoder>
ConversationEncoder::Create(std::shared_ptr<const Tokenizer> tokenizer,
                            const ChosenTemplate &chosen, const std::string &source) {
  if (tokenizer->NormalizesSpecial())
    return Refuse("`", source,
                  "`: its special tokens are looked for in a text that was changed before; "
                  "conversations of such a tokenizer are not done");
  ConversationEncoder made(tokenizer);
  made.source = source;
  absl::Status status = made.Open(chosen);
  for (const auto *given : {&made.plain, &made.with_tools})
    if (status.ok() && *given)
      status = made.CheckForm(**given);
  if (status.ok() && made.plain)
    status = made.CheckAround();
  if (!status.ok())
    return status;
  return made;
}

absl::StatusOr<ConversationEncoder>
ConversationEncoder::CreateToAsk(std::shared_ptr<const Tokenizer> tokenizer,
                                 const ChosenTemplate &chosen, const std::string &source) {
  ConversationEncoder made(tokenizer);
  made.source = source;
  absl::Status status = made.Open(chosen);
  if (status.ok())
    status = made.no_form;
  if (!status.ok())
    return status;
  return made;
}

/// The tokens that a template writes at contents of system and user, with nothing but white space
/// between.
std::vector<int32_t> ConversationEncoder::TokensAtContents(const ChatForm &form) const {
  std::vector<int32_t> found;
  const absl::string_view text = form.around();
  for (int32_t id : tokenizer->FindAdded(text))
    for (size_t at = 0; (at = text.find(ChatForm::kProbe, at)) != absl::string_view::npos; ++at) {
      const std::string token = ContentOf(*tokenizer, id);
      if (absl::EndsWith(absl::StripTrailingAsciiWhitespace(text.substr(0, at)), token) ||
          absl::StartsWith(
              absl::StripLeadingAsciiWhitespace(text.substr(at + ChatForm::kProbe.size())), token))
        found.push_back(id);
    }
  return found;
}

/// The tokens that templates write around contents. A user must not be able to write them, also
/// where the file does not call them special. Pairs such as <think> and </think> are none of them,
/// unless they enclose what a user writes or end an answer: they are what the model writes.
void ConversationEncoder::FindStructure() {
  std::set<int32_t> found = {tokenizer->bos(), tokenizer->eos()};
  std::map<int32_t, int32_t> pairs; // both ways
  for (const AddedToken &token : tokenizer->added_tokens()) {
    if (tokenizer->Ends(token.id))
      found.insert(token.id);
    if (const size_t slash = token.content.find('/'); slash != std::string::npos) {
      const int32_t first = tokenizer->Find(std::string(token.content).erase(slash, 1));
      if (first >= 0 && tokenizer->IsAdded(first)) {
        pairs[first] = token.id;
        pairs[token.id] = first;
      }
    }
  }
  for (const auto *form : {&plain, &with_tools}) {
    if (!*form)
      continue;
    const std::string end = (*form)->end().value_or("");
    for (const std::vector<int32_t> &ids : {TokensAtContents(**form), tokenizer->FindAdded(end)})
      found.insert(ids.begin(), ids.end());
    for (int32_t id : tokenizer->FindAdded(absl::StrCat((*form)->around(), "\n", (*form)->ask())))
      if (pairs.count(id) == 0)
        found.insert(id);
  }
  std::vector<int32_t> of_answers;
  for (auto [one, other] : pairs)
    if (found.count(one) == 0 && found.count(other) == 0)
      of_answers.push_back(one);
    else
      found.insert({one, other});
  for (int32_t id : found) // some files have runs of white space as tokens
    if (id >= 0 && !absl::StripAsciiWhitespace(ContentOf(*tokenizer, id)).empty())
      structure.push_back(id);
  marks = std::make_shared<ContentMarks>(*tokenizer, structure, of_answers);
}

const Template *ConversationEncoder::TemplateFor(bool tools) const {
  return tools && with_tools ? &with_tools->jinja() : plain ? &plain->jinja() : nullptr;
}

std::string ConversationEncoder::DescribeUnreadValues() const {
  std::string names;
  for (const auto &[name, value] : values)
    if (!(plain && plain->jinja().HasVariable(name)) &&
        !(with_tools && with_tools->jinja().HasVariable(name)))
      absl::StrAppend(&names, names.empty() ? "`" : ", `", name, "`");
  return names.empty() ? ""
                       : absl::StrCat("note: the chat template does not read ",
                                      PrintableName(names), ", which template_values gives");
}

absl::StatusOr<const ChatForm *>
ConversationEncoder::FormFor(const Conversation &conversation) const {
  if (!no_form.ok())
    return no_form;
  return conversation.has_tools() && with_tools ? with_tools.get() : plain.get();
}

std::string ConversationEncoder::EndOfAnswer() const { return plain ? plain->mark() : ""; }

/// What ends an answer must be a token. Otherwise a user could write it.
absl::Status ConversationEncoder::CheckForm(const ChatForm &form) {
  if (!form.end())
    return absl::OkStatus(); // each line tells
  const auto refuse = [&](const auto &...what) {
    return Refuse("`", source, "`: the template ", form.jinja().name(), what...);
  };
  if (form.end()->empty())
    return refuse(" writes nothing behind an answer, so a model would not learn where to end; ",
                  tokenizer->eos() < 0
                      ? "two steps mend that: `eos_token` in tokenizer_config.json beside the file "
                        "names a token that ends a text, and `{{ eos_token }}` behind the answers "
                        "of the template writes it"
                      : "`{{ eos_token }}` there writes the token that ends a text");
  const std::string end = form.mark();
  if (const int32_t id = tokenizer->Find(end); id < 0 || !tokenizer->IsAdded(id))
    return refuse(" ends an answer with `", end, "`, which is no added token");
  for (int32_t id : tokenizer->FindAdded(form.ask()))
    if (const std::string token = ContentOf(*tokenizer, id);
        token != end && !absl::StripAsciiWhitespace(token).empty() &&
        absl::StrContains(*form.end(), token))
      return refuse(" writes ", Excerpt(*form.end()), " behind an answer, and `", token,
                    "` to ask for one, so a model would learn to go on behind the end");
  return absl::OkStatus();
}

/// The tokens around a text must be found in it.
absl::Status ConversationEncoder::CheckAround() {
  EncodeOptions options;
  options.surround = false;
  for (auto [name, id] :
       {std::pair("bos_token", tokenizer->bos()), std::pair("eos_token", tokenizer->eos())}) {
    if (id < 0 || !plain->jinja().Mentions(name))
      continue;
    std::vector<int32_t> tokens;
    if (absl::Status status = encoder.Encode(ContentOf(*tokenizer, id), options, tokens);
        !status.ok())
      return status;
    if (tokens != std::vector<int32_t>{id})
      return Refuse("`", source, "`: the template ", plain->jinja().name(), " writes `",
                    ContentOf(*tokenizer, id), "`, which the file does not find in a text");
  }
  return absl::OkStatus();
}

absl::StatusOr<LearntTokens> ConversationEncoder::EncodePair(const ChatRecord &record) {
  if (tokenizer->eos() < 0)
    return Refuse("`", source, "` names no token that ends a text, which ",
                  record.prompt.empty() ? "a text" : "a completion",
                  " needs; `eos_token` in tokenizer_config.json beside it does");
  EncodeOptions options;
  options.special = false;
  options.closes = false;
  LearntTokens out;
  absl::Status status = encoder.Encode(record.prompt, options, out.tokens);
  out.targets.resize(out.tokens.size(), false);
  options.surround = false;
  options.begins = record.prompt.empty();
  if (status.ok())
    status = encoder.Encode(record.completion, options, out.tokens);
  if (!status.ok())
    return status;
  out.tokens.push_back(tokenizer->eos());
  out.targets.resize(out.tokens.size(), true);
  return out;
}

absl::StatusOr<LearntTokens> ConversationEncoder::EncodeText(const ChatText &chat,
                                                             absl::string_view mark) {
  const Unmarked text = ContentMarks::Unmark(chat.text, mark);
  LearntTokens out;
  EncodeOptions options;
  options.surround = false;
  options.plain.marks = structure;
  const auto append = [&](size_t begin, size_t end, bool is_target) -> absl::Status {
    options.plain.ranges.clear();
    for (const auto &[first, last] : text.plain)
      if (last > begin && first < end)
        options.plain.ranges.push_back(
            {std::max(first, begin) - begin, std::min(last, end) - begin});
    absl::Status status = encoder.Encode(text.text.substr(begin, end - begin), options, out.tokens);
    out.targets.resize(out.tokens.size(), is_target);
    if (begin == end)
      return status;
    options.begins = false;
    options.follows = !out.tokens.empty() && tokenizer->IsAdded(out.tokens.back());
    return status;
  };
  size_t done = 0;
  for (const auto &[begin, end] : chat.targets) {
    const size_t first = std::max(text.PlaceOf(begin), done), last = text.PlaceOf(end);
    absl::Status status = append(done, first, false);
    if (status.ok())
      status = append(first, std::max(first, last), true);
    if (!status.ok())
      return status;
    done = std::max(first, last);
  }
  if (absl::Status status = append(done, text.text.size(), false); !status.ok())
    return status;
  return out;
}

/// The error as the user's own text, without the marks in it.
static absl::Status WithoutMark(const absl::Status &status, const std::string &mark) {
  return mark.empty()
             ? status
             : absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{mark, ""}}));
}

/// A template that looks for special tokens in contents finds them in the text as it is, but not in
/// the marked one, in which they have no meaning.
static absl::Status CompareMarked(const Template &form, const std::string &marked,
                                  const std::string &plain) {
  if (marked == plain)
    return absl::OkStatus();
  const size_t at = CommonBytes(marked, plain), shown = at - std::min<size_t>(at, 30);
  return Refuse("`", form.name(),
                "`: the template looks for special tokens in contents, which are "
                "text here. Behind ",
                Excerpt(absl::string_view(plain).substr(shown, at - shown)), " it writes ",
                Excerpt(absl::string_view(plain).substr(at)), " where they are tokens, and ",
                Excerpt(absl::string_view(marked).substr(at)), " where they are text");
}

/// The texts of an adapted conversation with marks in its contents.
absl::StatusOr<std::vector<ChatText>>
ConversationEncoder::MarkedAnswers(const ChatForm &form, const Conversation &conversation,
                                   const std::function<bool()> &stops, std::string &mark) const {
  Conversation marked = conversation;
  absl::StatusOr<std::string> found = marks->Mark(marked, form.jinja().text());
  if (!found.ok())
    return found.status();
  mark = *std::move(found);
  absl::StatusOr<std::vector<ChatText>> texts = form.Answers(marked, stops);
  if (!texts.ok())
    return WithoutMark(texts.status(), mark);
  if (mark.empty())
    return texts;
  const absl::StatusOr<std::vector<ChatText>> plain = form.Answers(conversation, stops);
  if (!plain.ok())
    return plain.status();
  bool is_same = texts->size() == plain->size();
  for (size_t i = 0; i < std::min(texts->size(), plain->size()); ++i) {
    const ChatText &one = (*texts)[i], &other = (*plain)[i];
    const Unmarked unmarked = ContentMarks::Unmark(one.text, mark);
    if (absl::Status status = CompareMarked(form.jinja(), unmarked.text, other.text); !status.ok())
      return status;
    is_same &= std::equal(one.targets.begin(), one.targets.end(), other.targets.begin(),
                          other.targets.end(), [&](const auto &a, const auto &b) {
                            return unmarked.PlaceOf(a.begin) == b.begin &&
                                   unmarked.PlaceOf(a.end) == b.end;
                          });
  }
  if (!is_same)
    return Refuse("`", form.jinja().name(),
                  "`: special tokens in contents, which are text here, "
                  "change which parts are learnt");
  return texts;
}

/// The texts in a value, keys, too.
static void ForEachText(const Value &value, absl::FunctionRef<void(const std::string &)> take) {
  if (value.is(Kind::text))
    take(value.text());
  if (value.is(Kind::list))
    for (const Value &item : value.list().items)
      ForEachText(item, take);
  if (value.is(Kind::dict))
    for (const auto &[key, member] : value.dict().entries) {
      ForEachText(key, take);
      ForEachText(member, take);
    }
}

absl::Status ConversationEncoder::EncodeQuestion(const std::vector<ChatMessage> &messages,
                                                 std::vector<int32_t> &tokens) {
  Conversation conversation;
  for (const ChatMessage &message : messages)
    conversation.messages.push_back(Value::Mapping(
        {{Value("role"), Value(message.role)}, {Value("content"), Value(message.content)}}));
  conversation.values = values;
  absl::StatusOr<const ChatForm *> form = FormFor(conversation);
  if (!form.ok())
    return form.status();
  const Conversation unmarked = conversation;
  absl::StatusOr<std::string> mark = "";
  if (!tokenizer->NormalizesSpecial())
    mark = marks->Mark(conversation, (*form)->jinja().text());
  else {
    absl::Status status;
    for (const ChatMessage &message : messages)
      status.Update(CheckContent(message.content));
    for (const auto &[name, value] : values)
      ForEachText(value, [&](const std::string &text) { status.Update(CheckContent(text)); });
    if (!status.ok())
      return status;
  }
  if (!mark.ok())
    return mark.status();
  absl::StatusOr<std::string> text = (*form)->Question(conversation);
  if (!text.ok())
    return WithoutMark(text.status(), *mark);
  if (!mark->empty()) {
    const absl::StatusOr<std::string> plain = (*form)->Question(unmarked);
    absl::Status status = plain.status();
    if (status.ok())
      status = CompareMarked((*form)->jinja(), ContentMarks::Unmark(*text, *mark).text, *plain);
    if (!status.ok())
      return status;
  }
  absl::StatusOr<LearntTokens> encoded = EncodeText({*std::move(text), {}}, *mark);
  if (!encoded.ok())
    return encoded.status();
  tokens.insert(tokens.end(), encoded->tokens.begin(), encoded->tokens.end());
  return absl::OkStatus();
}

/// Where special tokens are looked for in a text that was changed before, nobody knows there who
/// wrote which part. A content without special tokens needs no such knowledge.
absl::Status ConversationEncoder::CheckContent(const std::string &content) {
  EncodeOptions options;
  options.surround = false;
  std::vector<int32_t> as_marks, as_text;
  absl::Status status = encoder.Encode(content, options, as_marks);
  options.special = false;
  if (status.ok())
    status = encoder.Encode(content, options, as_text);
  const bool has_mark = std::any_of(as_text.begin(), as_text.end(), [&](int32_t token) {
    return std::find(structure.begin(), structure.end(), token) != structure.end();
  });
  if (!status.ok() || (as_marks == as_text && !has_mark))
    return status;
  return Refuse("a message with a special token, which `", source,
                "` cannot tell from its own: its special tokens are looked for in a text that was "
                "changed");
}

absl::StatusOr<std::vector<LearntTokens>>
ConversationEncoder::Encode(const ChatRecord &record, const std::function<bool()> &stops) {
  std::vector<LearntTokens> documents;
  if (record.is_pair) {
    absl::StatusOr<LearntTokens> pair = EncodePair(record);
    if (!pair.ok())
      return pair.status();
    documents.push_back(*std::move(pair));
  } else {
    Conversation conversation = record.conversation;
    conversation.values = values;
    absl::StatusOr<const ChatForm *> form = FormFor(conversation);
    if (!form.ok())
      return form.status();
    // Before it is marked: arguments of calls are read as JSON.
    absl::StatusOr<Conversation> adapted = (*form)->Adapt(std::move(conversation));
    if (!adapted.ok())
      return adapted.status();
    std::string mark;
    absl::StatusOr<std::vector<ChatText>> texts = MarkedAnswers(**form, *adapted, stops, mark);
    if (!texts.ok())
      return texts.status();
    for (const ChatText &text : *texts) {
      absl::StatusOr<LearntTokens> document = EncodeText(text, mark);
      if (!document.ok())
        return document.status();
      documents.push_back(*std::move(document));
    }
  }
  bool has_target = false;
  for (LearntTokens &document : documents) {
    // Nothing stands before it that it could follow from.
    if (!document.targets.empty())
      document.targets[0] = false;
    has_target |=
        std::find(document.targets.begin(), document.targets.end(), true) != document.targets.end();
  }
  if (!has_target)
    return Refuse("it has no token that could be learnt");
  return documents;
}

} // namespace boa
