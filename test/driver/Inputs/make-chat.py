"""Writes a small tokenizer with the marks of chatml, and conversations.

make-chat.py GPT2.JSON FOLDER
"""

import json
import sys
from pathlib import Path

tokenizer = json.loads(Path(sys.argv[1]).read_text())
folder = Path(sys.argv[2])
for id, text in ((420, "<|im_start|>"), (421, "<|im_end|>")):
    tokenizer["added_tokens"].append({"id": id, "content": text, "single_word": False, "lstrip": False,
                                      "rstrip": False, "normalized": False, "special": True})
(folder / "tokenizer.json").write_text(json.dumps(tokenizer))
(folder / "tokenizer_config.json").write_text('{"eos_token": "<|end|>"}')


def chat(question, answer):
    return json.dumps({"messages": [{"role": "user", "content": question},
                                    {"role": "assistant", "content": answer}]}) + "\n"


# What is asked is noise: only with a mask does the loss fall to nearly nothing.
seed, lines, pairs = 1, "", ""
for _ in range(400):
    noise = ""
    for _ in range(20):
        seed = seed * 1103515245 + 12345 & 0x7fffffff
        noise += chr(97 + (seed >> 16) % 26)
    lines += chat(noise, "yes yes yes yes")
    pairs += noise + " yes yes yes yes\n"
(folder / "chat.jsonl").write_text(lines)
(folder / "held.jsonl").write_text(lines[:lines.index("\n", len(lines) // 10) + 1])
(folder / "texts").mkdir(exist_ok=True)
(folder / "texts/a.txt").write_text(pairs)
(folder / "texts/b.txt").write_text("In the beginning God created the heaven and the earth.\n" * 40)
