"""What `boa data` should count, found without it.

data-counts.py make FOLDER
    writes a tokenizer whose tokens are the bytes of a text, and <|end|>; pairs, texts and tokens.
data-counts.py check FOLDER KIND CONTEXT [packed|apart] < JSON
    counts what FOLDER has, token by token, and compares with the output of boa data --json.

All but the last target of a document stands in the document; its first token is no target.
"""

import array
import json
import sys
from pathlib import Path

END = 256


def alphabet():
    """The letters by which GPT-2 writes bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    letters = {b: chr(b) for b in shown}
    letters.update({b: chr(256 + i) for i, b in enumerate(hidden)})
    return letters


def make(folder):
    vocab = {letter: byte for byte, letter in alphabet().items()}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": END, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
                  "merges": []}}))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|end|>"}')
    # Questions are longer than answers, so that some sequences have no target.
    pairs = [{"prompt": "q" * (3 + 37 * i % 101), "completion": "a" * (i % 7) + "[\n\x1b]"} for i in range(50)]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (folder / "texts").mkdir()
    for i in range(9):
        (folder / f"texts/{i}.txt").write_text("é" * (i * i + 1))
    tokens = [END if i % 31 == 30 else i % 200 for i in range(1000)]
    (folder / "tokens.bin").write_bytes(array.array("H", tokens).tobytes())


def documents_of(folder, kind):
    """Lists of tokens and whether each is a target; whether documents are told."""
    if kind == "pairs":
        for line in (folder / "pairs.jsonl").read_text().splitlines():
            pair = json.loads(line)
            prompt, completion = list(pair["prompt"].encode()), [*pair["completion"].encode(), END]
            yield [(t, False) for t in prompt] + [(t, True) for t in completion]
    elif kind == "texts":
        for file in sorted((folder / "texts").iterdir()):
            tokens = [*file.read_bytes(), END]
            yield [(t, i > 0) for i, t in enumerate(tokens)]
    elif kind == "bytes":
        yield [(t, i > 0) for i, t in enumerate((folder / "texts/8.txt").read_bytes())]
    else:
        tokens, document = array.array("H", (folder / "tokens.bin").read_bytes()), []
        for token in tokens:
            document.append((token, bool(document)))
            if token == END and kind == "ended":
                yield document
                document = []
        yield document


def quantile(lengths, share):
    return min(x for x in lengths if sum(y <= x for y in lengths) >= share * len(lengths))


def check(folder, kind, context, packed):
    documents = [d for d in documents_of(folder, kind) if d]
    stream, split = [], 0
    for document in documents:
        begin = len(stream)
        stream += document
        split += any((begin + i - 1) // context != begin // context
                     for i, (_, target) in enumerate(document) if target)
        if not packed:
            stream += [(None, False)] * (-len(stream) % context)
    windows = []
    for first in range(0, len(stream) - packed, context):
        own = stream[first:first + context]
        own += [(None, False)] * (context - len(own))
        following = stream[first + 1:first + context + 1]
        following += [(None, False)] * (context - len(following))
        windows.append(([t for t, _ in own], [t if target else -1 for t, target in following]))
    kept = [w for w in windows if any(t >= 0 for t in w[1])] if kind == "pairs" else windows
    count = lambda some: sum(t >= 0 for _, targets in some for t in targets)
    told = kind != "tokens"
    lengths = [len(d) for d in documents]
    held = len(kept) - len(kept) // 10
    expected = {
        "documents": len(documents), "longer": sum(x > context for x in lengths), "split": split,
        "untargeted": sum(not any(t for _, t in d) for d in documents),
        "lengths": {"min": min(lengths), "p50": quantile(lengths, .5), "p90": quantile(lengths, .9),
                    "p95": quantile(lengths, .95), "p99": quantile(lengths, .99), "max": max(lengths)},
    } if told else dict.fromkeys(["documents", "longer", "split", "untargeted", "lengths"])
    expected.update({"tokens": sum(lengths), "targets": count(windows), "sequences": len(kept),
                     "left_out": len(windows) - len(kept),
                     "padding": sum(w[0].count(None) for w in kept),
                     "train": {"sequences": held, "targets": count(kept[:held])},
                     "validate": {"sequences": len(kept) - held, "targets": count(kept[held:])}})
    data = json.load(sys.stdin)
    found = data["sources"][0]
    assert data["context"] == context and found["packed"] == packed and len(data["sources"]) == 1, data
    if kind == "bytes":  # whose sequences begin anywhere
        size, cut = len(stream), len(stream) - len(stream) // 10
        expected["padding"] = 0
        expected["train"] = {"sequences": -(-(cut - 1) // context), "targets": cut - 1}
        expected["validate"] = {"sequences": -(-(size - cut - 1) // context), "targets": size - cut - 1}
    assert abs(found["train"].pop("steps_of_epoch") - expected["train"]["targets" if kind == "bytes" else "sequences"]
               / (context if kind == "bytes" else 1) / data["batch"]) < 1e-9, found
    differ = {key: (value, found[key]) for key, value in expected.items() if found[key] != value}
    assert not differ, differ
    assert len(data["first"]) == 2
    for sequence in data["first"] if kind != "bytes" else []:
        known = [w for w in kept[:held]
                 if [t or 0 for t in w[0]] == sequence["tokens"] and w[1] == sequence["targets"]]
        assert known, sequence
    print(kind, "as counted:", expected["tokens"], "tokens,", expected["targets"], "targets")


if sys.argv[1] == "make":
    make(Path(sys.argv[2]))
else:
    check(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:] != ["apart"])
