//===- Format.cpp - The canonical layout of a specification ---------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three passes over the tokens: what stands between them (comments, blank lines),
// the columns of neighbouring settings and parameters, the lines themselves. The
// tree says only where items, stages, statements and settings begin.
//
//===----------------------------------------------------------------------===//
#include "frontend/Format.h"

#include "frontend/Lexer.h"
#include "frontend/Token.h"
#include "runtime/support/printable.h"

#include <algorithm>
#include <map>

namespace boa::frontend {

namespace {

size_t widthOf(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size(); ++width)
    at += std::max<size_t>(Utf8Length(text, at), 1);
  return width;
}

enum class Start { None, Item, Stage, Statement, Field };

/// A comment on a line of its own.
struct Comment {
  std::string_view text;
  bool blankBefore = false;
};

/// A token and what the author wrote before it.
struct Piece {
  Token token;
  std::string_view text;
  Start start = Start::None;
  bool tight = false;            // no blank before it: of a unit, of a share
  bool sign = false;             // a minus of one operand
  bool newLine = false;          // the author began a line with it
  bool blankBefore = false;      // after a blank line
  std::string_view trailing;     // the comment behind the token before it
  std::vector<Comment> comments; // on the lines between
  size_t pad = 0;                // blanks that align it

  bool hasComment() const { return !trailing.empty() || !comments.empty(); }
  /// A blank line stands before it and its comments, or between them.
  bool isApart() const {
    return blankBefore || std::any_of(comments.begin(), comments.end(),
                                      [](const Comment &c) { return c.blankBefore; });
  }
};

class Formatter {
public:
  Formatter(const Sources &sources, int32_t file, const Program &program)
      : text(sources.get(file).text) {
    Diagnostics none;
    uint32_t end = 0;
    for (Token &token : lex(sources, file, none)) {
      Piece piece;
      piece.token = std::move(token);
      Location location = piece.token.location;
      piece.text = text.substr(location.begin, location.end - location.begin);
      readGap(text.substr(end, location.begin - end), piece);
      end = location.end;
      indexOf[location.begin] = pieces.size();
      pieces.push_back(std::move(piece));
    }
    markTokens();
    markStarts(program);
  }

  std::string run() {
    for (size_t i = 0; i < pieces.size(); ++i)
      place(i);
    return joinLines();
  }

private:
  //===--------------------------------------------------------------------===//
  // What was written
  //===--------------------------------------------------------------------===//

  static std::string_view trim(std::string_view line) {
    size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
    return line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
  }

  /// Blanks and comments between two tokens.
  void readGap(std::string_view gap, Piece &piece) {
    bool first = true, blank = false;
    for (;;) {
      size_t end = gap.find('\n');
      std::string_view line = trim(gap.substr(0, end));
      bool last = end == std::string_view::npos;
      if (!line.empty() && first && !pieces.empty())
        piece.trailing = line;
      else if (!line.empty())
        piece.comments.push_back({line, blank});
      if (!line.empty() || first)
        blank = false;
      else if (!last)
        blank = true;
      if (last)
        break;
      first = false;
      gap.remove_prefix(end + 1);
    }
    piece.newLine = !first;
    piece.blankBefore = blank;
  }

  bool is(size_t i, TokenKind kind) const { return i < pieces.size() && pieces[i].token.is(kind); }
  bool isWord(size_t i) const {
    return is(i, TokenKind::Name) && !isReserved(pieces[i].token.text);
  }
  bool opens(size_t i) const {
    return is(i, TokenKind::LeftParen) || is(i, TokenKind::LeftBracket) ||
           is(i, TokenKind::LeftBrace);
  }
  bool isNumber(size_t i) const { return is(i, TokenKind::Integer) || is(i, TokenKind::Real); }

  /// As the parser reads them: units, shares, signs.
  void markTokens() {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (isNumber(i) && isWord(i + 1) && !pieces[i + 1].newLine && is(i + 2, TokenKind::Slash) &&
          is(i + 3, TokenKind::Name) && pieces[i + 3].token.text == "s")
        pieces[i + 2].tight = pieces[i + 3].tight = true;
      if (i > 0 && isNumber(i) && isWord(i - 1) && is(i + 1, TokenKind::Percent))
        pieces[i + 1].tight = true;
      bool ends = i > 0 && (isWord(i - 1) || isNumber(i - 1) || is(i - 1, TokenKind::RightParen));
      pieces[i].sign = is(i, TokenKind::Minus) && !ends;
    }
  }

  size_t at(Location location) const { return indexOf.at(location.begin); }
  void begin(Location location, Start start) { pieces[at(location)].start = start; }

  void markStarts(const Program &program) {
    for (const ModelSyntax &model : program.models) {
      begin(model.location, Start::Item);
      for (const StageSyntax &stage : model.stages) {
        begin(stage.location, Start::Stage);
        for (const Statement &statement : stage.body)
          begin(statement.location, Start::Statement);
        alignParams(stage.body);
      }
    }
    for (const TrainSyntax &train : program.trains) {
      begin(train.location, Start::Item);
      markFields(train.fields, /*open=*/true);
    }
    for (const PlanSyntax &plan : program.plans) {
      begin(plan.location, Start::Item);
      markFields(plan.fields, /*open=*/true);
    }
    for (const MachineSyntax &machine : program.machines) {
      begin(machine.location, Start::Item);
      markFields(machine.fields, /*open=*/true);
    }
  }

  /// Whether a block's settings stand on lines of their own.
  bool isOpen(const Field &field) const {
    if (!field.isBlock || field.fields.empty())
      return false;
    const Piece &first = pieces[at(field.fields[0].key.location)];
    return first.newLine || first.hasComment();
  }

  void markFields(const std::vector<Field> &fields, bool open) {
    for (const Field &field : fields) {
      begin(field.key.location, Start::Field);
      markFields(field.fields, isOpen(field));
    }
    if (open)
      alignFields(fields);
  }

  //===--------------------------------------------------------------------===//
  // Columns
  //===--------------------------------------------------------------------===//

  /// Blanks between a token and the one before it on its line.
  size_t space(size_t i) const {
    const Piece &piece = pieces[i], &before = pieces[i - 1];
    switch (piece.token.kind) {
    case TokenKind::Comma:
    case TokenKind::RightParen:
    case TokenKind::RightBracket:
    case TokenKind::Colon:
    case TokenKind::Dot:
      return 0;
    case TokenKind::LeftParen:
      if (isWord(i - 1))
        return 0;
      break;
    default:
      break;
    }
    bool inside = before.token.is(TokenKind::LeftParen) || before.token.is(TokenKind::LeftBracket);
    return inside || before.token.is(TokenKind::Dot) || before.sign || piece.tight ? 0 : 1;
  }

  /// Whether a token stays where the author began a line with it.
  bool mayBegin(size_t i) const {
    bool call = is(i, TokenKind::LeftParen) && isWord(i - 1);
    bool shape = is(i, TokenKind::LeftBracket) && is(i - 1, TokenKind::Colon);
    return !call && !shape && !is(i, TokenKind::LeftBrace) && !is(i, TokenKind::Comma) &&
           !is(i, TokenKind::Colon) && !is(i, TokenKind::Equals) && !is(i, TokenKind::RightParen) &&
           !is(i, TokenKind::RightBracket);
  }

  /// The width of tokens [first, last) on one line; 0 where they stand on several.
  size_t lineWidth(size_t first, size_t last) const {
    size_t width = widthOf(pieces[first].text);
    for (size_t i = first + 1; i < last; ++i) {
      if (pieces[i].hasComment() || (pieces[i].newLine && mayBegin(i)))
        return 0;
      width += space(i) + widthOf(pieces[i].text);
    }
    return width;
  }

  /// A line with columns: where each begins, and the width before it.
  struct Row {
    std::vector<size_t> columns;
    std::vector<size_t> widths;
  };

  void align(std::vector<Row> &rows) {
    for (size_t column = 0; !rows.empty() && column < rows[0].columns.size(); ++column) {
      size_t most = 0;
      for (const Row &row : rows)
        most = std::max(most, row.widths[column]);
      for (const Row &row : rows)
        pieces[row.columns[column]].pad = most - row.widths[column];
    }
    rows.clear();
  }

  void alignFields(const std::vector<Field> &fields) {
    std::vector<Row> rows;
    for (const Field &field : fields) {
      size_t first = at(field.key.location), sign = first + (field.label ? 2 : 1);
      size_t width = pieces[sign].hasComment() ? 0 : lineWidth(first, sign);
      if (pieces[first].isApart() || isOpen(field) || width == 0)
        align(rows);
      if (!isOpen(field) && width > 0)
        rows.push_back({{sign}, {width}});
    }
    align(rows);
  }

  void alignParams(const std::vector<Statement> &body) {
    std::vector<Row> rows, names;
    for (const Statement &statement : body) {
      size_t first = at(statement.location);
      bool param = statement.kind == Statement::Kind::Param;
      if (!param || pieces[first].isApart()) {
        align(rows);
        align(names);
      }
      if (!param)
        continue;
      size_t dims = at(statement.dimsLocation), equals = dims + 1;
      while (pieces[equals].token.location.begin < statement.dimsLocation.end)
        ++equals;
      size_t name = lineWidth(first, dims), shape = lineWidth(dims, equals);
      if (name > 0 && shape > 0 && !pieces[dims].hasComment() && !pieces[equals].hasComment())
        rows.push_back({{dims, equals}, {name, shape}});
      else
        align(rows);
      // The column of `as`, in neighbours that have it.
      size_t as = statement.external ? at(statement.asLocation) : equals;
      size_t init = lineWidth(equals, as);
      if (as > equals && init > 0 && !pieces[as].newLine && !pieces[as].hasComment())
        names.push_back({{as}, {init}});
      else
        align(names);
    }
    align(rows);
    align(names);
  }

  //===--------------------------------------------------------------------===//
  // Lines
  //===--------------------------------------------------------------------===//

  struct Line {
    std::string text;
    std::string_view comment; // behind it
  };

  /// What is open: its contents, and where they stand.
  struct Frame {
    TokenKind kind;
    Start owner;
    bool open = false; // contents and end on lines of their own
    size_t indent = 0; // of the contents
    size_t outer = 0;  // of the line that opens it
  };

  void addLine(size_t indent) { lines.push_back({std::string(indent, ' '), {}}); }
  void addBlank() {
    if (!lines.empty() && !(lines.back().text.empty() && lines.back().comment.empty()))
      lines.push_back({});
  }

  /// Which blank lines stand before a token and its comments: before the first of them
  /// always, as written, or never; between them as written, or never.
  struct Blanks {
    enum { Always, AsWritten, Never } first;
    bool between;
  };

  /// The token on a new line behind its comments, which stand at `comments`.
  void breakLine(const Piece &piece, size_t indent, size_t comments, Blanks blanks) {
    bool isFirst = true;
    auto part = [&](bool written) {
      if (isFirst ? blanks.first == Blanks::Always || (blanks.first != Blanks::Never && written)
                  : blanks.between && written)
        addBlank();
      isFirst = false;
    };
    for (const Comment &comment : piece.comments) {
      part(comment.blankBefore);
      addLine(comments);
      lines.back().text += comment.text;
    }
    if (piece.token.is(TokenKind::End))
      return;
    part(piece.blankBefore);
    addLine(indent);
    lineIndent = indent;
  }

  void place(size_t i) {
    Piece &piece = pieces[i];
    bool first = i == 0, end = is(i, TokenKind::End);
    bool opened = !first && opens(i - 1);
    if (!piece.trailing.empty())
      lines.back().comment = piece.trailing;
    bool closes = is(i, TokenKind::RightParen) || is(i, TokenKind::RightBracket) ||
                  is(i, TokenKind::RightBrace);
    bool breaks = first || piece.hasComment();
    size_t blanks = first ? 0 : space(i);
    size_t indent = statementIndent + 4;

    if (opened) {
      Frame &frame = stack.back();
      bool list = frame.kind == TokenKind::LeftBrace;
      frame.open = breaks || (list ? frame.owner != Start::Field : false) || piece.newLine;
      if (closes)
        frame.open = breaks;
      frame.outer = list ? statementIndent : lineIndent;
      frame.indent = frame.open ? frame.outer + 2 : column() + blanks;
    }
    const Frame *frame = stack.empty() ? nullptr : &stack.back();
    if (frame)
      indent = frame->kind == TokenKind::LeftBrace ? indent : frame->indent;

    size_t comments = frame ? frame->indent : 0;
    Blanks parts{opened ? Blanks::Never : Blanks::AsWritten, true};
    if (piece.start == Start::Item || end) {
      breaks = true;
      indent = comments = 0;
      parts.first = end ? Blanks::AsWritten : Blanks::Always;
    } else if (closes) {
      breaks |= frame->open && (frame->kind == TokenKind::LeftBrace || piece.newLine);
      indent = frame->outer;
    } else if (piece.start == Start::Stage || piece.start == Start::Statement) {
      breaks = true;
      indent = frame->indent;
      if (piece.start == Start::Stage)
        parts.first = opened ? Blanks::AsWritten : Blanks::Always;
    } else if (piece.start == Start::Field) {
      breaks |= frame->open || piece.newLine;
      indent = frame->indent;
      if (!opened && !is(i - 1, TokenKind::Comma))
        blanks = 2;
    } else {
      breaks |= piece.newLine && mayBegin(i);
      comments = indent;
    }
    // An expression has none.
    if (piece.start == Start::None && !end && !is(i, TokenKind::RightBrace))
      parts = {Blanks::Never, false};

    if (breaks) {
      breakLine(piece, indent, comments, parts);
      if (closes && lines.size() > 1)
        dropBlankBefore();
    } else {
      lines.back().text += std::string(blanks + piece.pad, ' ');
    }
    if (end)
      return;
    if (piece.start != Start::None) {
      statementIndent = column();
      owner = piece.start;
    }
    lines.back().text += piece.text;
    if (closes)
      stack.pop_back();
    if (opens(i))
      stack.push_back({piece.token.kind, owner});
  }

  /// No blank line stands before a bracket that closes.
  void dropBlankBefore() {
    size_t before = lines.size() - 2;
    if (lines[before].text.empty() && lines[before].comment.empty())
      lines.erase(lines.begin() + ptrdiff_t(before));
  }

  size_t column() const { return widthOf(lines.back().text); }

  /// Comments behind neighbouring lines stand in one column.
  std::string joinLines() {
    std::string out;
    for (size_t i = 0; i < lines.size();) {
      size_t last = i, most = 0;
      for (; last < lines.size() && !lines[last].comment.empty(); ++last)
        most = std::max(most, widthOf(lines[last].text));
      for (; i < last; ++i)
        out += lines[i].text + std::string(most - widthOf(lines[i].text) + 2, ' ') +
               std::string(lines[i].comment) + "\n";
      if (i < lines.size())
        out += lines[i++].text + "\n";
    }
    return out;
  }

  std::string_view text;
  std::vector<Piece> pieces;
  std::map<uint32_t, size_t> indexOf; // of the token that begins at a byte
  std::vector<Line> lines;
  std::vector<Frame> stack;
  size_t lineIndent = 0, statementIndent = 0;
  Start owner = Start::None; // of the next bracket
};

} // namespace

std::string format(const Sources &sources, int32_t file, const Program &program) {
  return Formatter(sources, file, program).run();
}

} // namespace boa::frontend
