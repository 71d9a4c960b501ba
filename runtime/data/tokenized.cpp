//===- tokenized.cpp - Texts and conversations as tokens ------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/data/tokenized.h"

#include "runtime/data/conversation.h"
#include "runtime/data/encode_text.h"
#include "runtime/data/file_kinds.h"
#include "runtime/data/tokenizer_print.h"
#include "runtime/data/tokens.h"
#include "runtime/support/printable.h"
#include "runtime/support/refuse.h"
#include "runtime/support/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace boa {
namespace {

// Of all that the tokens depend on here: another number makes all of them again.
constexpr int kCacheVersion = 7;
constexpr int64_t kGroupBytes = 64 << 20;
constexpr size_t kMostNamed = 16; // columns in a note
constexpr int64_t kTextHashBlock = 64 << 10, kTextHashBlocks = 256;

/// Size, time and contents of a file.
absl::StatusOr<std::string> PrintOf(const std::string &path) {
  absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok())
    return file.status();
  absl::StatusOr<uint64_t> hash = HashOfFile(*file, kTextHashBlock, kTextHashBlocks);
  if (!hash.ok())
    return hash.status();
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error)
    return absl::UnavailableError(absl::StrCat("`", path, "`: ", error.message()));
  return absl::StrFormat("%d %d %016x", file->size(), time.time_since_epoch().count(), *hash);
}

absl::Status AtLine(const std::string &path, int64_t line, const absl::Status &status) {
  return absl::Status(status.code(),
                      absl::StrCat("`", path, "`, line ", line, ": ", status.message()));
}

/// Some files that are cached together.
struct Group {
  std::vector<std::string> files;
  std::string key;
  int64_t bytes = 0;

  std::string name() const {
    return files.size() == 1 ? files[0] : absl::StrCat(files.front(), " to ", files.back());
  }
};

/// Appends the tokens of documents to an entry.
class DocumentWriter {
public:
  /// Without an entry nothing is written. `multiple`: each document is padded to a multiple of so
  /// many tokens. Any token will do, since attention looks back alone. `measure` may be empty.
  DocumentWriter(EntryWriter *entry, int64_t multiple, const std::function<void(int64_t)> &measure)
      : entry(entry), multiple(multiple), measure(measure) {}

  absl::Status Append(const std::vector<int32_t> &tokens, const std::vector<bool> &targets) {
    length += int64_t(tokens.size());
    return entry ? entry->Append(tokens, targets) : absl::OkStatus();
  }
  /// Does nothing where a document has no tokens.
  absl::Status EndDocument() {
    if (length == 0)
      return absl::OkStatus();
    if (measure)
      measure(length);
    const int64_t rest = (multiple - length % multiple) % multiple;
    length = 0;
    if (!entry)
      return absl::OkStatus();
    entry->EndDocument();
    return entry->Pad(rest);
  }

private:
  EntryWriter *const entry;
  const int64_t multiple;
  const std::function<void(int64_t)> &measure;
  int64_t length = 0; // of the document, until now
};

class Maker {
public:
  Maker(const DataSource &source, const SourceOptions &options)
      : source(source), options(options), cache(options.cache) {}

  absl::StatusOr<std::unique_ptr<Source>> Open() {
    const std::vector<std::string> files = FindFiles(source.files);
    if (files.empty())
      return NoFile(source.files);
    if (absl::Status status = FindGroups(files); !status.ok())
      return status;
    std::vector<CacheEntry> entries(groups.size());
    std::vector<size_t> absent;
    for (size_t i = 0; i < groups.size(); ++i) {
      absl::StatusOr<std::optional<CacheEntry>> found = cache.Find(groups[i].key);
      if (!found.ok())
        return found.status();
      if (!*found)
        absent.push_back(i);
      else
        entries[i] = **std::move(found);
    }
    if (!absent.empty() && !options.cache.makes)
      return absl::FailedPreconditionError(
          absl::StrCat(FormatSource(source), ": its tokens are not made yet"));
    if (!absent.empty())
      if (absl::Status status = MakeAll(absent, entries); !status.ok())
        return status;
    std::vector<std::string> shards;
    ShardNames names = {files.size(), {}};
    int64_t tokens = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      // A run with a larger vocabulary may have made the entry. Making it again finds the place.
      if (entries[i].greatest >= options.vocab) {
        all_bytes += groups[i].bytes;
        if (absl::Status status = Make(groups[i], nullptr); !status.ok())
          return status;
      }
      tokens += entries[i].tokens;
      for (const std::string &shard : entries[i].shards) {
        shards.push_back(shard);
        names.of.push_back(groups[i].name());
      }
    }
    if (tokens == 0)
      return absl::InvalidArgumentError(
          absl::StrCat(FormatSource(source), ": its files have no tokens"));
    return OpenShards(source, shards, std::move(names), options);
  }

  absl::Status Measure(std::function<void(int64_t)> document) {
    measure = std::move(document);
    Group all;
    all.files = FindFiles(source.files);
    if (all.files.empty())
      return NoFile(source.files);
    std::error_code error; // an error of a file comes when it is opened
    for (const std::string &file : all.files)
      all_bytes += int64_t(std::filesystem::file_size(file, error));
    return Make(all, nullptr);
  }

private:
  /// How tokens are made, and the date that templates show.
  absl::Status FindWay() {
    absl::StatusOr<std::string> print = PrintOfTokenizer(source.tokenizer);
    if (!print.ok())
      return print.status();
    absl::StatusOr<TemplatePrint> form = PrintOfTemplate(source, options.cache);
    if (!form.ok())
      return form.status();
    date = form->date;
    way = absl::StrCat("version ", kCacheVersion, "\n", CallOf(source.kind), "\n", *print,
                       "\nspecial ", source.special, "\ntemplate ", form->text, "\nvalues ",
                       source.values, "\ndate ", date, "\n");
    if (!source.packed)
      absl::StrAppend(&way, "multiple of ", options.context, "\n");
    return absl::OkStatus();
  }

  absl::Status FindGroups(const std::vector<std::string> &files) {
    if (absl::Status status = FindWay(); !status.ok())
      return status;
    for (const std::string &file : files) {
      std::error_code error;
      const auto bytes = int64_t(std::filesystem::file_size(file, error));
      if (error)
        return absl::UnavailableError(absl::StrCat("`", file, "`: ", error.message()));
      if (groups.empty() || groups.back().bytes + bytes > kGroupBytes)
        groups.emplace_back();
      groups.back().files.push_back(file);
      groups.back().bytes += bytes;
    }
    for (Group &group : groups) {
      absl::StatusOr<std::string> key = FindKey(group);
      if (!key.ok())
        return key.status();
      group.key = *std::move(key);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> FindKey(const Group &group) const {
    std::string all = way;
    for (const std::string &file : group.files) {
      if (options.cache.stops())
        return absl::CancelledError("interrupted while texts were compared with their tokens; "
                                    "nothing was changed");
      absl::StatusOr<std::string> print = PrintOf(file);
      if (!print.ok())
        return print.status();
      absl::StrAppend(&all, *print, "\n");
    }
    return KeyOf(all);
  }

  absl::Status MakeAll(const std::vector<size_t> &absent, std::vector<CacheEntry> &entries) {
    if (options.cache.directory.empty())
      return absl::FailedPreconditionError(
          absl::StrCat(FormatSource(source), ": there is no folder to keep its tokens in"));
    if (absl::Status status = cache.Lock(); !status.ok())
      return status;
    const auto begin = std::chrono::steady_clock::now();
    size_t files = 0;
    int64_t made = 0;
    for (size_t i : absent)
      all_bytes += groups[i].bytes;
    for (size_t i : absent) {
      // The run that had the lock before may have made it.
      absl::StatusOr<std::optional<CacheEntry>> found = cache.Find(groups[i].key);
      if (!found.ok())
        return found.status();
      if (*found) {
        entries[i] = **std::move(found);
        done_bytes += groups[i].bytes;
        continue;
      }
      if (absl::Status status = OpenTokenizer(); !status.ok())
        return status;
      EntryWriter writer = cache.Begin(groups[i].key, tokenizer->size());
      if (absl::Status status = Make(groups[i], &writer); !status.ok())
        return status;
      if (absl::Status status = CheckUnchanged(groups[i]); !status.ok())
        return status;
      absl::StatusOr<CacheEntry> entry = writer.Finish();
      if (!entry.ok())
        return entry.status();
      files += groups[i].files.size();
      made += entry->tokens;
      entries[i] = *std::move(entry);
    }
    cache.Unlock();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (files > 0)
      options.cache.say(absl::StrCat("made ", FormatCount(double(made)), " tokens of ", files,
                                     files == 1 ? " file in " : " files in ",
                                     FormatSeconds(seconds), ", kept in ",
                                     options.cache.directory));
    if (!unread.empty())
      options.cache.say(absl::StrCat("note: `", source.files, "`: not read: `",
                                     Printable(absl::StrJoin(unread, "`, `")), "`",
                                     unread.size() == kMostNamed ? " and perhaps more" : ""));
    if (!unread_values.empty())
      options.cache.say(unread_values);
    if (parted > 0)
      options.cache.say(absl::StrCat(
          "note: `", source.files, "`: ", parted,
          parted == 1 ? " conversation is" : " conversations are",
          " several documents, because the template writes an answer in another way once the "
          "conversation goes on: each is learnt as it is written"));
    return absl::OkStatus();
  }

  /// Whether the files still are what the key of the group says.
  absl::Status CheckUnchanged(const Group &group) {
    const std::string before = way;
    if (absl::Status status = FindWay(); !status.ok())
      return status;
    if (way != before)
      return absl::AbortedError(
          absl::StrCat("`", source.tokenizer,
                       "`: it or the chat template changed while tokens were made; begin again"));
    absl::StatusOr<std::string> key = FindKey(group);
    if (!key.ok())
      return key.status();
    if (*key != group.key)
      return absl::AbortedError(
          absl::StrCat("`", group.name(), "`: it changed while it was read; begin again"));
    return absl::OkStatus();
  }

  absl::Status OpenTokenizer() {
    if (tokenizer)
      return absl::OkStatus();
    absl::StatusOr<std::shared_ptr<const Tokenizer>> opened = Tokenizer::Open(source.tokenizer);
    if (!opened.ok())
      return opened.status();
    tokenizer = *std::move(opened);
    for (const std::string &note : tokenizer->notes())
      options.cache.say(absl::StrCat("note: ", note));
    return absl::OkStatus();
  }

  absl::Status Show(int64_t bytes) const {
    options.cache.show(done_bytes + bytes, all_bytes);
    return options.cache.stops() ? Stopped() : absl::OkStatus();
  }

  static absl::Status Stopped() {
    return absl::CancelledError("interrupted while tokens were made; the next run makes those that "
                                "lack");
  }

  /// Without a writer the tokens are only looked at.
  absl::Status Make(const Group &group, EntryWriter *entry) {
    if (absl::Status status = OpenTokenizer(); !status.ok())
      return status;
    DocumentWriter writer(entry, source.packed ? 1 : options.context, measure);
    Encoder encoder(tokenizer);
    absl::StatusOr<ConversationEncoder> conversations = absl::NotFoundError("");
    if (source.kind == SourceKind::chat) {
      conversations = ConversationEncoder::Create(tokenizer, {source.form, source.values, date},
                                                  source.tokenizer);
      if (!conversations.ok())
        return conversations.status();
      unread_values = conversations->DescribeUnreadValues();
    }
    for (const std::string &path : group.files) {
      absl::StatusOr<InputFile> file = InputFile::Open(path);
      if (!file.ok())
        return file.status();
      absl::Status status = CheckKind(*file, conversations.ok() ? Wanted::records : Wanted::text);
      if (status.ok())
        status = conversations.ok() ? MakeRecords(*file, *conversations, writer)
                                    : MakeText(*file, encoder, writer);
      if (!status.ok())
        return status;
      done_bytes += file->size();
    }
    return absl::OkStatus();
  }

  absl::Status MakeText(const InputFile &file, Encoder &encoder, DocumentWriter &writer) {
    TextOptions text;
    text.special = source.special;
    text.vocab = options.vocab;
    const int32_t eos = tokenizer->eos();
    bool begins = true;
    int32_t last = -1;
    std::vector<int32_t> piece; // of one document
    std::vector<bool> targets;
    const auto flush = [&] {
      absl::Status status = writer.Append(piece, targets);
      piece.clear();
      targets.clear();
      return status;
    };
    const auto take = [&](const std::vector<int32_t> &tokens) {
      for (int32_t token : tokens) {
        piece.push_back(token);
        targets.push_back(!begins);
        last = token;
        begins = source.special && token == eos;
        if (!begins)
          continue;
        if (absl::Status status = flush(); !status.ok())
          return status;
        if (absl::Status status = writer.EndDocument(); !status.ok())
          return status;
      }
      return flush();
    };
    absl::Status status = EncodeText(file, text, tokenizer, encoder, take,
                                     [&](int64_t bytes) { return Show(bytes); });
    if (!status.ok())
      return status;
    if (last >= 0 && eos >= 0 && last != eos) {
      if (eos >= options.vocab)
        return absl::InvalidArgumentError(
            absl::StrCat("`", source.tokenizer, "`: token ", eos,
                         ", which ends a text, is outside the vocabulary of ", options.vocab));
      if (status = take({eos}); !status.ok())
        return status;
    }
    return writer.EndDocument();
  }

  absl::Status MakeRecords(const InputFile &file, ConversationEncoder &encoder,
                           DocumentWriter &writer) {
    const auto choice = [&](bool tools) { return encoder.TemplateFor(tools); };
    return ReadLines(file, [&](int64_t number, absl::string_view line, int64_t end) {
      absl::StatusOr<ChatRecord> record = ParseRecord(line, choice);
      if (!record.ok())
        return AtLine(file.path(), number, record.status());
      for (const std::string &column : record->unread)
        if (unread.size() < kMostNamed &&
            std::find(unread.begin(), unread.end(), column) == unread.end())
          unread.push_back(column);
      absl::StatusOr<std::vector<LearntTokens>> documents =
          encoder.Encode(*record, options.cache.stops);
      if (absl::IsCancelled(documents.status()))
        return Stopped();
      if (!documents.ok())
        return AtLine(file.path(), number, documents.status());
      parted += documents->size() > 1;
      for (const LearntTokens &document : *documents) {
        if (const int32_t token = FindBeyond(document.tokens, options.vocab); token >= 0)
          return AtLine(file.path(), number,
                        Refuse("token ", token, " is outside the vocabulary of ", options.vocab));
        absl::Status status = writer.Append(document.tokens, document.targets);
        if (status.ok())
          status = writer.EndDocument();
        if (!status.ok())
          return status;
      }
      return Show(end);
    });
  }

  const DataSource &source;
  const SourceOptions &options;
  TokenCache cache;
  std::string way;  // how tokens are made, for keys
  std::string date; // that templates show; "": none does
  std::vector<Group> groups;
  std::shared_ptr<const Tokenizer> tokenizer; // opened when it is needed
  int64_t done_bytes = 0, all_bytes = 0;      // to show
  std::function<void(int64_t)> measure;       // of the tokens of each document; may be empty
  std::vector<std::string> unread;            // columns of records that only describe
  std::string unread_values;                  // a note of those of the template
  int64_t parted = 0;                         // conversations of several documents
};

} // namespace

absl::Status MeasureTokenized(const DataSource &source, const SourceOptions &options,
                              const std::function<void(int64_t)> &document) {
  return Maker(source, options).Measure(document);
}

absl::StatusOr<std::unique_ptr<Source>> OpenTokenized(const DataSource &source,
                                                      const SourceOptions &options) {
  return Maker(source, options).Open();
}

} // namespace boa
