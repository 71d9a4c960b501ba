#!/usr/bin/env python3
"""check-tour.py PAGE SPEC: the IR that PAGE quotes is the output of boa, to the letter.

A block of PAGE that opens with ```mlir emit=PHASE [device=KIND] quotes `boa compile SPEC
--emit=PHASE`. Within a line `...` stands for any text, and alone on a line for any lines. The
quote may be indented less than the output, by the same number of spaces in each line.
"""
import re
import subprocess
import sys
import tempfile

page, spec = sys.argv[1:]


def printed(phase, device):
    with open(spec) as file, tempfile.NamedTemporaryFile("w", suffix=".boa") as copy:
        copy.write(file.read().replace("device cpu", "device " + device))
        copy.flush()
        return subprocess.run(["boa", "compile", copy.name, "--emit=" + phase, "--set",
                               "train.data=" + spec], capture_output=True, text=True,
                              check=True).stdout.splitlines()


def matches(quoted, line, indent):
    """Whether the output's line is the quoted one, behind `indent` spaces."""
    pattern = " " * indent + ".*".join(re.escape(part) for part in quoted.split("..."))
    return re.fullmatch(pattern, line) is not None


def find(lines, output, begin, indent):
    """The first place, from begin, where the output has all of these lines in a row."""
    for start in range(begin, len(output) - len(lines) + 1):
        if all(matches(*pair, indent) for pair in zip(lines, output[start:])):
            return start
    return None


def missing(quote, output):
    """The lines that the output has nowhere after those before them; none if the quote is right."""
    runs = [run.splitlines() for run in re.split(r"^ *\.\.\.\n", quote, flags=re.MULTILINE) if run]
    furthest = 0
    for indent in range(0, 12, 2):
        begin = 0
        for i, run in enumerate(runs):
            start = find(run, output, begin, indent)
            if start is None:
                furthest = max(furthest, i)
                break
            begin = start + len(run)
        else:
            return []
    return runs[furthest]


with open(page) as file:
    blocks = re.findall(r"```mlir emit=(\w+)(?: device=(\w+))?\n(.*?)```", file.read(), re.DOTALL)
for phase, device, quote in blocks:
    lines = missing(quote, printed(phase, device or "cpu"))
    if lines:
        sys.exit(f"--emit={phase} does not print these lines in a row, after the quoted lines "
                 "before them:\n" + "\n".join(lines))
print(f"{len(blocks)} blocks are as printed")
