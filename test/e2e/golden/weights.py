"""Initial weights that a formula makes, the same bits wherever it is computed.

Both sides of run-golden begin from them: make.py in PyTorch, and Boa from a
safetensors file. The numbers come from a 32-bit linear congruential generator that
each tensor starts from the checksum of its name. They are uniform in [-1/8, 1/8), and
exact in f32. The weights of norms lie around 1. Nothing is left at zero, so that every
parameter counts from the first step.
"""
import json
import math
import struct
import zlib


def values(name, count):
    center = 1.0 if "norm" in name or ("ln" in name and name.endswith("_w")) else 0.0
    state = zlib.crc32(name.encode())
    result = []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        result.append(center + ((state >> 12) / 2.0**19 - 1) / 8)
    return result


def write_safetensors(path, shapes):
    """`shapes`: dimensions by name."""
    header, data = {}, b""
    for name, shape in shapes.items():
        count = math.prod(shape)
        begin = len(data)
        data += struct.pack(f"<{count}f", *values(name, count))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
