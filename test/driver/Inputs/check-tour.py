#!/usr/bin/env python3
"""check-tour.py PAGE SPEC: what PAGE quotes is what boa prints, line after line.

A block of PAGE opened with ```mlir emit=PHASE [device=KIND] is compared with `boa compile SPEC
--emit=PHASE`. Names of values are of no matter; `...` stands for anything.
"""
import re
import subprocess
import sys
import tempfile

page, spec = sys.argv[1:]


def anonymous(line):
    return re.sub(r"%[\w#]+", "%", line.strip())


def printed(phase, device):
    with open(spec) as file, tempfile.NamedTemporaryFile("w", suffix=".boa") as copy:
        copy.write(file.read().replace("device cpu", "device " + device))
        copy.flush()
        return subprocess.run(["boa", "compile", copy.name, "--emit=" + phase, "--set",
                               "train.data=" + spec], capture_output=True, text=True,
                              check=True).stdout.splitlines()


with open(page) as file:
    blocks = re.findall(r"```mlir emit=(\w+)(?: device=(\w+))?\n(.*?)```", file.read(), re.DOTALL)
for phase, device, quoted in blocks:
    output = iter(map(anonymous, printed(phase, device or "cpu")))
    for line in quoted.splitlines():
        pattern = ".*".join(re.escape(part) for part in anonymous(line).split("..."))
        if not any(re.fullmatch(pattern, other.rstrip()) for other in output):
            sys.exit(f"--emit={phase}: after the lines before it, nothing is printed like\n  {line}")
print(f"{len(blocks)} blocks are as printed")
