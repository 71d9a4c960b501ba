#!/usr/bin/env python3
"""check-examples.py PASSES.md FOLDER [PASS]: each pass does to its example what its description says.

A description has pairs of blocks. With PASS, only its blocks run, and what `boa-opt`
prints for them is shown.

    ```mlir before                      a program, which runs as it is
    ```mlir before FILE PASSES          a quote of what `boa-opt FOLDER/FILE PASSES` prints
    ```mlir after OPTIONS               a quote of what `boa-opt --PASS=OPTIONS` prints for that program
    ```text after                       a quote of its messages: it refuses the program, or prints a table

A quote has lines that follow one another. `...` stands for any text of a line, and alone on a line for any
lines. Each run of lines may be indented less than the output. The name of a value stands for the one name
that the output has for it in that function. What `after` quotes may not be there before.
"""
import concurrent.futures
import re
import subprocess
import sys

NAME = r"%[\w$-]+(?:\.[\w$-]+)*"
END = r"(?![\w$-]|\.[\w$-])"
SCOPE = re.compile(r"\s*(func\.func|llvm\.func|gpu\.func|boa\.kernel|boa\.step)\b")


class Pattern:
    """A regular expression for the lines of a quote."""

    def __init__(self, lines):
        self.text, self.groups, self.scope = "", 0, {}
        run = []
        for line in lines:
            if line.strip() != "...":
                run.append(line)
                continue
            self.add_run(run)
            self.text += r"(?:.*\n)*?"
            run = []
        self.add_run(run)

    def add_run(self, lines):
        """Lines that follow one another, all indented by as much more than here."""
        least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        for number, line in enumerate(lines):
            if SCOPE.match(line):
                self.scope = {}
            if number == 0:
                indent, first = self.group(" *"), self.groups
            else:
                indent = f"(?P=g{first})"
            self.text += f"^{indent}{self.words(line[least:])}$\n"

    def group(self, text):
        self.groups += 1
        return f"(?P<g{self.groups}>{text})"

    def words(self, line):
        return "".join(self.value(part) if re.fullmatch(NAME, part) else
                       ".*?" if part == "..." else re.escape(part)
                       for part in re.split(rf"({NAME}|\.\.\.)", line) if part)

    def value(self, name):
        if name in self.scope:
            return f"(?P=g{self.scope[name]}){END}"
        others = "|".join(f"(?P=g{number})" for number in self.scope.values())
        found = f"(?!(?:{others}){END})" * bool(others) + self.group(NAME) + END
        self.scope[name] = self.groups
        return found


def is_quoted(lines, output):
    return re.search(Pattern(lines).text, output, re.MULTILINE) is not None


def boa_opt(program, *passes):
    return subprocess.run(["boa-opt", "-", *passes], input=program, capture_output=True, text=True)


def find_fault(block, output):
    """Why the output does not have the lines of the block; none if it has."""
    lines = block.splitlines()
    if is_quoted(lines, output):
        return None
    count = next(n for n in range(1, len(lines) + 1) if not is_quoted(lines[:n], output))
    return f"boa-opt prints no such line behind those before it:\n{lines[count - 1]}\nIt prints:\n{output}"


class Examples:
    """The blocks of one pass."""

    def __init__(self, name, text):
        self.name = name
        self.blocks = re.findall(r"^```(\w+) ?(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)

    def run(self):
        """Yields (what, why it is wrong or none, what was printed)."""
        if not any(words.startswith("after") for _, words, _ in self.blocks):
            yield "example", "there is none", ""
        for kind, words, block in self.blocks:
            role, *words = words.split() or [""]
            if role == "before":
                yield self.before(words, block)
            elif role == "after":
                yield self.after(kind, words, block)
            else:
                yield kind, "the block is neither before nor after", ""

    def before(self, words, block):
        self.program = block
        if words:
            with open(f"{folder}/{words[0]}") as file:
                self.program = boa_opt(file.read(), *words[1:]).stdout
        result = boa_opt(self.program)
        self.unchanged = result.stdout
        fault = result.stderr if result.returncode else words and find_fault(block, result.stdout)
        return "before", fault, result.stdout

    def after(self, kind, words, block):
        result = boa_opt(self.program, f"--{self.name}=" + " ".join(words) if words else f"--{self.name}")
        output = result.stderr + result.stdout
        if result.returncode and kind != "text":
            fault = result.stderr
        elif is_quoted(block.splitlines(), self.unchanged):
            fault = "the block is there before, too"
        else:
            fault = find_fault(block, output)
        return "after", fault, output


page, folder, only = (sys.argv + [None])[1:4]
with open(page) as file:
    parts = re.split(r"^### `--(.*)`\n", file.read(), flags=re.MULTILINE)[1:]
passes = [pair for pair in zip(parts[::2], parts[1::2]) if only in (None, pair[0])]
faults = 0
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for (name, _), results in zip(passes, pool.map(lambda pair: list(Examples(*pair).run()), passes)):
        for what, fault, output in results:
            if only:
                print(f"{what}:\n{output}")
            if fault:
                faults += 1
                print(f"--{name}, {what}: {fault}")
print(f"{len(passes)} passes, {faults} faults")
sys.exit(faults > 0)
