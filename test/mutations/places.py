"""Finds functions in C++ by their names, and in them calls, conditions and statements by tokens.

It knows braces, parentheses and a few keywords. It is no parser of C++.
"""
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:[^\n\\]|\\.)*)
  | (?P<text>R"(?P<end>[^(\s]*)\(.*?\)(?P=end)" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+')
  | [A-Za-z_]\w* | \.?\d(?:'?[\w.])*
  | ->\*? | :: | \.\.\. | <<=? | \+\+ | -- | && | \|\| | [-+*/%&|^!=<>]= | .
  """, re.VERBOSE | re.DOTALL | re.MULTILINE)
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {")": "(", "]": "[", "}": "{"}
# Tokens before and behind a condition.
BEFORE = {"(", "{", "&&", "||", ";", "?", ",", "=", "&=", "|=", "return"}
BEHIND = {")", "}", "&&", "||", ";", "?", ","}
# Kinds of places, and their default replacements.
KINDS = {"statement": ";", "call": "absl::OkStatus()", "condition": None, "value": None, "tokens": None}


@dataclasses.dataclass
class Token:
    text: str
    begin: int
    end: int


def tokens_of(text):
    return [Token(match.group(), match.start(), match.end()) for match in TOKEN.finditer(text)
            if not match.group("space")]


class Missing(Exception):
    """The place of a row is gone, or no longer the only one."""


def mutated(text, row):
    """The text with the change of this row."""
    try:
        return Source(text).mutated(row)
    except (IndexError, KeyError, ValueError) as error:  # braces that do not match, for one
        raise Missing(f"cannot be read: {error}") from error


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.words = [token.text for token in self.tokens]
        self.match = {}
        open_ones = []
        for i, word in enumerate(self.words):
            if word in OPENING:
                open_ones.append(i)
            elif word in CLOSING:
                self.match[open_ones[-1]] = i
                self.match[i] = open_ones.pop()
        self.functions = []  # (qualified name, its first token, its last)
        self.find_functions(0, len(self.words), [])

    # Functions

    def find_functions(self, i, end, scope):
        """Those that are defined from i to the end of a namespace or class."""
        head = i
        while i < end:
            word = self.words[i]
            if word == "{":
                close = self.match[i]
                name, kind = self.name_of(head, i)
                if kind == "scope":
                    self.find_functions(i + 1, close, [*scope, name] if name else scope)
                elif kind == "function":
                    self.functions.append(("::".join([*scope, name]), i, close))
                elif kind == "value":
                    i = close + 1
                    continue
                head = close + 1
                i = close
            elif word in OPENING:
                i = self.match[i]
            elif word == ";" or (word == ":" and self.words[i - 1] in ("public", "private", "protected")):
                head = i + 1
            i += 1

    def name_of(self, head, brace):
        """The name and the kind of the block that the brace opens."""
        words, plain = self.words, []
        i = head
        while i < brace:
            plain.append(i)
            i = self.match[i] if words[i] in OPENING else i
            i += 1
        kinds = [i for i in plain if words[i] in ("namespace", "class", "struct", "union", "enum", "extern")]
        parameters = [i for i in plain if words[i] == "("]
        if kinds and not parameters:
            names = []
            for i in plain[plain.index(kinds[-1]) + 1:]:
                if words[i] in (":", "<"):
                    break
                names += [words[i]] if re.match(r"[A-Za-z_]", words[i]) and words[i] != "final" else []
            return (names[-1] if names else ""), "scope"
        if not parameters or "=" in [words[i] for i in plain if i < parameters[0]]:
            return "", "value"
        # A member's initializer: the body comes after it.
        listed = any(words[i] == ":" and i > parameters[0] for i in plain)
        if listed and re.match(r"\w", words[brace - 1]):
            return "", "value"
        first = last = parameters[0] - 1
        while words[first - 1] in ("~", "operator"):
            first -= 1
        while words[first - 1] == "::" and first - 2 >= head:
            first -= 2
        return "".join(words[first:last + 1]), "function"

    def bodies(self, name):
        """The ranges of tokens of the functions of this name, without their braces."""
        found = [(first + 1, last) for known, first, last in self.functions
                 if known == name or known.endswith("::" + name)]
        if not found:
            raise Missing(f"there is no {name}")
        return found

    # Statements

    def statements(self, i, end):
        """All from i to end, and those in them: (first, behind the last, where the head ends)."""
        while i < end:
            i = yield from self.statement(i)

    def statement(self, i):
        words, begin = self.words, i
        if words[i] == "{":
            yield from self.statements(i + 1, self.match[i])
            return self.match[i] + 1
        if words[i] in ("if", "for", "while", "switch"):
            i += 1 if words[i + 1] == "(" else 2  # if constexpr
            yield from self.blocks(i + 1, self.match[i])
            head = self.match[i] + 1
            i = yield from self.statement(head)
            if words[begin] == "if" and words[i] == "else":
                i = yield from self.statement(i + 1)
            yield begin, i, head
            return i
        if words[i] == "do":
            i = yield from self.statement(i + 1)
            i = self.match[i + 1] + 2
            yield begin, i, i
            return i
        if words[i] in ("case", "default"):
            while words[i] != ":":
                i += 1
            return i + 1
        while words[i] != ";":
            if words[i] in OPENING:
                yield from self.blocks(i, i + 1)
                i = self.match[i]
            i += 1
        yield begin, i + 1, i + 1
        return i + 1

    def blocks(self, i, end):
        """Statements of lambdas from i to end."""
        while i < end:
            if self.words[i] in OPENING:
                close = self.match[i]
                if self.words[i] == "{" and ";" in self.words[i:close]:
                    yield from self.statements(i + 1, close)
                else:
                    yield from self.blocks(i + 1, close)
                i = close
            i += 1

    # Places

    def mutated(self, row):
        kind = next(kind for kind in KINDS if kind in row)
        words = [token.text for token in tokens_of(row[kind])]
        places = set()
        for first, last in self.bodies(row["function"]):
            for i in self.occurrences(words, first, last):
                if "in" in row and not self.near(first, last, i, row["in"]):
                    continue
                place = getattr(self, kind + "_at")(first, last, i, len(words))
                places |= {place} if place else set()
        if len(places) != 1 and not 0 < row.get("nth", 0) <= len(places):
            raise Missing(f"{row[kind]} is there {len(places)} times")
        first, last = sorted(places)[row.get("nth", 1) - 1]
        begin, end = self.tokens[first].begin, self.tokens[last - 1].end
        new = row.get("with", KINDS[kind]).replace("@", self.text[begin:end])
        return self.text[:begin] + new + self.text[end:]

    def occurrences(self, words, first, last):
        return [i for i in range(first, last - len(words) + 1) if self.words[i:i + len(words)] == words]

    def near(self, first, last, i, wanted):
        """Whether the statement that token i is in has these tokens, too."""
        statement = self.statement_at(first, last, i, 1)
        return statement and self.occurrences([token.text for token in tokens_of(wanted)], *statement)

    def tokens_at(self, first, last, i, count):
        return i, i + count

    def statement_at(self, first, last, i, count):
        """The innermost statement whose head has token i."""
        around = [place for place in self.statements(first, last) if place[0] <= i < place[2]]
        return min(around, key=lambda place: place[2] - place[0])[:2] if around else None

    def call_at(self, first, last, i, count):
        """The innermost call that the tokens from i are the function of, or in an argument."""
        words, paren = self.words, i + count
        if words[paren] == "<":
            paren = words.index(">", paren) + 1
        if words[paren] != "(":
            paren = i - 1
            while not (words[paren] == "(" and re.match(r"\w|>", words[paren - 1])):
                paren = self.match[paren] - 1 if words[paren] in CLOSING else paren - 1
                if paren < first:
                    return None
        first = paren - 1
        if words[first] == ">":
            while words[first] != "<":
                first -= 1
            first -= 1
        while words[first - 1] in ("::", ".", "->"):
            first -= 2
            while words[first] in CLOSING:
                first = self.match[first]
                if re.match(r"\w", words[first - 1]) and words[first - 1] != "return":
                    first -= 1
        return first, self.match[paren] + 1

    def condition_at(self, first, last, i, count):
        """The operand of && or ||, or else the whole condition, that has token i."""
        words, first, last = self.words, i, i
        while words[first - 1] not in BEFORE:
            first = self.match[first - 1] if words[first - 1] in CLOSING else first - 1
        while words[last] not in BEHIND:
            last = self.match[last] + 1 if words[last] in OPENING else last + 1
        return first, last

    def value_at(self, first, last, i, count):
        """The expression that is assigned to the tokens from i, or returned."""
        words = self.words
        if words[i] != "return" and words[i + count] != "=":
            return None
        first = i + 1 if words[i] == "return" else i + count + 1
        last = first
        while words[last] != ";":
            last = self.match[last] + 1 if words[last] in OPENING else last + 1
        return first, last
