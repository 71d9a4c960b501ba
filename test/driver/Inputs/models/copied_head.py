"""copied_head.py FROM TO: a copy of the folder of a GPT, with the table of its embedding as a head, too."""
import json
import shutil
import struct
import sys
from pathlib import Path

shutil.copytree(sys.argv[1], sys.argv[2])
path = Path(sys.argv[2]) / "model.safetensors"
data = path.read_bytes()
length = struct.unpack("<Q", data[:8])[0]
header, data = json.loads(data[8:8 + length]), data[8 + length:]
table = header["transformer.wte.weight"]
begin, end = table["data_offsets"]
header["lm_head.weight"] = {**table, "data_offsets": [len(data), len(data) + end - begin]}
text = json.dumps(header).encode()
path.write_bytes(struct.pack("<Q", len(text)) + text + data + data[begin:end])
