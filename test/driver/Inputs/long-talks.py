"""Makes one of twenty conversations longer than 256 tokens of the tokenizer of make-chat.py.

long-talks.py FILE
"""
import json
import sys
from pathlib import Path

file = Path(sys.argv[1])
lines = [json.loads(line) for line in file.read_text().splitlines()]
for line in lines[::20]:
    line["messages"][0]["content"] = "xyzzy" * 60
file.write_text("".join(json.dumps(line) + "\n" for line in lines))
