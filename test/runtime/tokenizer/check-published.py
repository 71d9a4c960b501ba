"""Compares tokenizer_encode with published vocabularies. By hand: the files are large.

    check-published.py ENCODE vectors FOLDER        llama.cpp's ggml-vocab-*.gguf with .inp and .out
    check-published.py ENCODE json FILE...          tokenizer.json, with Hugging Face's tokenizers
    check-published.py ENCODE model FILE...         tokenizer.model, with sentencepiece

ENCODE is build/release/bin/tokenizer_encode. SEED and COUNT choose the random texts.
"""

import os
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

WORDS = ["Hello", "world", "don't", "DON'T", "IT'\u017f", "we'LL", " ", "  ", "\n", "\r\n", "\t", "   \n  ",
         "123", "1234567", "\u00b2\u00b3", "\u2167", "e\u0301", "\u212b", "\u4e2d\u6587", "\u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4",
         "\u0939\u093f\u0928\u094d\u0926\u0940", "\U0001f999", "\U0001f468\u200d\U0001f469", "!!!", "/", "//\n", "$", "<|endoftext|>",
         "\u2581", "\u01c5", "\u02b0", "\u00a0", "\u3000", "\u0301", "camelCase", "HTMLParser", "XML\u3042", "\ufb01",
         "\u0130", "'s", "'", "_", "\u0903", "\x01", "\x7f", "\u2028", "\x85", "\ufffd", "[UNK]", "na\u00efve"]
RANGES = [(1, 0x7f), (0x80, 0x24f), (0x300, 0x36f), (0x370, 0x1fff), (0x2000, 0x2fff),
          (0x3000, 0xd7ff), (0x1f000, 0x1faff)]


def texts():
    draw = random.Random(int(os.environ.get("SEED", "1")))
    for _ in range(int(os.environ.get("COUNT", "4000"))):
        parts = [draw.choice(WORDS) if draw.random() < 0.8 else
                 chr(draw.randint(*draw.choice(RANGES))) for _ in range(draw.randint(1, 14))]
        text = "".join(c for c in "".join(parts) if unicodedata.category(c) != "Cn")
        if text:
            yield text


def encode(program, file, inputs, plain):
    environment = dict(os.environ, **({"BOA_PLAIN": "1"} if plain else {}))
    run = subprocess.run([program, file], input="\0".join(inputs).encode(), capture_output=True,
                         env=environment, check=False)
    if run.returncode:
        print(f"{file}: {run.stderr.decode().strip()}")
        return None
    return run.stdout.decode(errors="replace").split("\n")[:-1]


def report(name, inputs, expected, got):
    wrong = [(t, e, g) for t, e, g in zip(inputs, expected, got) if e != g]
    for text, e, g in wrong[:3]:
        print(f"  {text!r}\n    expected {e[:200]}\n    got      {g[:200]}")
    print(f"{name}: {len(inputs)} texts, {len(wrong)} differ")


def main():
    program, kind, *files = sys.argv[1:]
    if kind == "vectors":
        for path in sorted(Path(files[0]).glob("ggml-vocab-*.gguf.inp")):
            inputs = path.open(encoding="utf8", newline="").read().split("\n__ggml_vocab_test__\n")
            expected = [line.strip() for line in path.with_suffix(".out").open()]
            got = encode(program, path.with_suffix(""), inputs, True)
            if got:
                # An empty text at the end has no line.
                report(path.name, inputs[:len(got)], expected, got)
        return
    inputs = list(texts())
    for file in files:
        if kind == "json":
            from tokenizers import Tokenizer
            tokenizer = Tokenizer.from_file(file)
            tokenizer.no_truncation()
            tokenizer.no_padding()
            expected = [tokenizer.encode(text).ids for text in inputs]
        else:
            from sentencepiece import SentencePieceProcessor
            processor = SentencePieceProcessor(model_file=file)
            expected = processor.encode(inputs)
        got = encode(program, file, inputs, kind == "model")
        if got:
            report(file, inputs, [" ".join(map(str, ids)) for ids in expected], got)


if __name__ == "__main__":
    main()
