"""ptx-table.py [narrow]: what the kernels of the PTX on stdin do, a line for those of a name that do
the same:

    NAME reads N writes N [warp] [block] [stack] [call]

N is how many bytes a thread's widest access of global memory has (0: there is none); warp: its
lanes shuffle; block: its threads wait for one another; stack: it has memory of its own in
.local, which is slow; call: it calls a function. `narrow`: of those alone that read or write
fewer than 8 bytes at once, or have a stack or call. At the end how many kernels there are.
"""

import re
import sys

WIDTH = re.compile(r"(?:\.v(\d+))?\.[bfsu](\d+)\s")
WORDS = {
    "warp": r"\bshfl\.",
    "block": r"\bbar(rier)?\.",
    "stack": r"__local_depot|\.local\b",
    "call": r"\bcall\b",
}


def widest(kind, body):
    bytes_of = [0]
    for line in re.findall(rf"\b{kind}\.global[^;]*;", body):
        count, bits = WIDTH.search(line).groups()
        bytes_of.append(int(count or 1) * int(bits) // 8)
    return max(bytes_of)


narrow = sys.argv[1:] == ["narrow"]
seen = set()
kernels = re.split(r"\.visible \.entry ", sys.stdin.read())[1:]
for kernel in kernels:
    name = re.sub(r"_launch\d+$", "", re.match(r"[\w$]+", kernel).group())
    reads, writes = widest("ld", kernel), widest("st", kernel)
    found = [word for word, pattern in WORDS.items() if re.search(pattern, kernel)]
    if not narrow or min(reads, writes) < 8 or {"stack", "call"} & set(found):
        line = " ".join([name, "reads", str(reads), "writes", str(writes), *found])
        if line not in seen:
            print(line)
        seen.add(line)
print(len(kernels), "kernels")
