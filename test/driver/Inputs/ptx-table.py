"""ptx-table.py [--only REGEX] [PREFIX TEST]: what the kernels of the PTX on stdin do, a line for
those of a name that do the same, in the order of the first of each:

    COUNT NAME reads BYTESxN,... writes BYTESxN,... [N copies] [N shuffles] [N barriers] [atomics] [stack] [call]

reads 16x6,4x1: of the instructions that read global memory six move 16 bytes each and one moves 4
(0: there is none). copies: 16 bytes go to shared memory while the thread goes on, and it waits for
them later; shuffles: lanes give one another values; barriers: threads wait for one another;
stack: a thread has memory of its own in .local, which is slow; call: it calls a function. At the
end how many kernels there are.

With PREFIX TEST the lines of TEST that begin with `PREFIX:` or `PREFIX-NEXT:` become these. What
stands between them stays above what it was above. --only: kernels whose names match.
"""

import argparse
import collections
import difflib
import re
import sys

ACCESS = re.compile(r"\b(ld|st)(?:\.\w+)*?\.global(?:\.\w+)*?(?:\.v(\d+))?\.[bfsu](\d+)\s")
NUMBERS = {"shuffle": r"\bshfl\.", "barrier": r"\bbar(?:rier)?\."}
COPY = r"\bcp\.async\.cg\.shared\.global\s"
WAIT = r"\bcp\.async\.wait_(?:group|all)\b"
WORDS = {
    "atomics": r"\b(?:atom|red)\.",
    "stack": r"__local_depot|\.local\b",
    "call": r"\bcall\b",
}


def describe(name, kernel):
    widths = {"ld": collections.Counter(), "st": collections.Counter()}
    for kind, count, bits in ACCESS.findall(kernel):
        widths[kind][int(count or 1) * int(bits) // 8] += 1
    # What is not understood (generic accesses, copies that nobody waits for) is not passed over.
    others = re.findall(r"\b(?:ld|st)\.(?!(?:param|shared|local)\b)|\bcp\.async", kernel)
    copies = len(re.findall(COPY, kernel)) if re.search(WAIT, kernel) else 0
    ends = len(re.findall(rf"{WAIT}|\bcp\.async\.commit_group\b", kernel)) if copies else 0
    known = copies + ends + sum(sum(counts.values()) for counts in widths.values())
    if len(others) != known:
        sys.exit(f"{name} has an access that ptx-table.py does not know")
    words = [name]
    for word, kind in (("reads", "ld"), ("writes", "st")):
        counts = sorted(widths[kind].items(), reverse=True)
        words += [word, ",".join(f"{width}x{count}" for width, count in counts) or "0"]
    if copies:
        words.append(f"{copies} copies")
    for word, pattern in NUMBERS.items():
        if found := len(re.findall(pattern, kernel)):
            words.append(f"{found} {word}" + "s" * (found > 1))
    return " ".join(words + [word for word, pattern in WORDS.items() if re.search(pattern, kernel)])


def renew(lines, prefix, table):
    """The lines of a test, those of the prefix replaced."""
    checks = re.compile(rf"{prefix}(?:-NEXT)?: *")
    at = [i for i, line in enumerate(lines) if checks.match(line)]
    old, above = [], [[]]
    for line in lines[at[0] : at[-1] + 1]:
        if checks.match(line):
            old.append(checks.sub("", line).replace("{{$}}", ""))
            above.append([])
        else:
            above[-1].append(line)
    new = []
    for _, i, end, j, last in difflib.SequenceMatcher(None, old, table, False).get_opcodes():
        for k in range(max(end - i, last - j)):
            new += above[i + k] if i + k < end else []
            if j + k < last:
                label = prefix + ("-NEXT:" if j + k else ":")
                new.append(f"{label:<{len(prefix) + 7}}{table[j + k]}{{{{$}}}}")
    return lines[: at[0]] + new + lines[at[-1] + 1 :]


parser = argparse.ArgumentParser()
parser.add_argument("--only", default="")
parser.add_argument("place", nargs="*")
arguments = parser.parse_args()
kernels = []
for text in re.split(r"\.visible \.entry ", sys.stdin.read())[1:]:
    name = re.sub(r"_launch\d+$", "", re.match(r"[\w$]+", text).group())
    if re.search(arguments.only, name):
        kernels.append(describe(name, text))
table = [f"{count} {line}" for line, count in collections.Counter(kernels).items()]
table.append(f"{len(kernels)} kernels")
if arguments.place:
    prefix, test = arguments.place
    with open(test) as file:
        lines = file.read().split("\n")
    with open(test, "w") as file:
        file.write("\n".join(renew(lines, prefix, table)))
else:
    print(*table, sep="\n")
