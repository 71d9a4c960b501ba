"""ptx-table.py: what each kernel of the PTX on stdin does, a line a kernel:

    NAME  reads N  writes N  [warp] [block] [stack] [call]

N is how many bytes a thread's widest access of global memory has (0: there is none); warp: its
lanes shuffle; block: its threads wait for one another; stack: it has memory of its own in
.local, which is slow; call: it calls a function.
"""

import re
import sys

WIDTH = re.compile(r"(?:\.v(\d+))?\.[bfsu](\d+)\s")


def widest(kind, body):
    bytes_of = [0]
    for line in re.findall(rf"\b{kind}\.global[^;]*;", body):
        count, bits = WIDTH.search(line).groups()
        bytes_of.append(int(count or 1) * int(bits) // 8)
    return max(bytes_of)


kernels = re.split(r"\.visible \.entry ", sys.stdin.read())[1:]
for kernel in kernels:
    name = re.match(r"[\w$]+", kernel).group()
    words = {
        "warp": r"\bshfl\.",
        "block": r"\bbar(rier)?\.",
        "stack": r"__local_depot|\.local\b",
        "call": r"\bcall\b",
    }
    found = [word for word, pattern in words.items() if re.search(pattern, kernel)]
    print(f"{name:<28} reads {widest('ld', kernel):<2}  writes {widest('st', kernel):<2}", *found)
