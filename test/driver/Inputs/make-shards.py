"""Writes bytes of a text as files of tokens, in several forms.

make-shards.py TEXT FOLDER
"""

import array
import struct
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_bytes()
folder = Path(sys.argv[2])


def llm_c(tokens):
    head = array.array("i", [20240520, 1, len(tokens)] + [0] * 253)
    return head.tobytes() + array.array("H", list(tokens)).tobytes()


(folder / "a.bin").write_bytes(llm_c(text[:30000]))
(folder / "b.bin").write_bytes(array.array("H", list(text[30000:60000])).tobytes())
# A Megatron file, whose documents are lines.
lines = text[60000:90000].splitlines(keepends=True)
(folder / "m.bin").write_bytes(array.array("H", list(b"".join(lines))).tobytes())
lengths = [len(line) for line in lines]
offsets = [2 * sum(lengths[:i]) for i in range(len(lengths))]
(folder / "m.idx").write_bytes(
    b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
    + array.array("i", lengths).tobytes() + array.array("q", offsets).tobytes()
    + array.array("q", range(len(lengths) + 1)).tobytes())
(folder / "v.bin").write_bytes(array.array("I", list(text[90000:100000])).tobytes())
