"""Writes golden/: a small tokenizer of each kind, and what the original libraries make of texts.

Needs the packages tokenizers, sentencepiece and tiktoken. Tests read only what this has written.

    python3 make-golden.py TEXT [TEMPLATES]

TEXT is an English text of a megabyte or so, to train on. TEMPLATES is a JSON object of Jinja texts by
the name that runtime/tokenizer/templates gives them; without it, golden/chat.json stays. Needs jinja2.
"""

import base64
import json
import random
import sys
from pathlib import Path

import sentencepiece
import tiktoken
from tokenizers import (AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers, Regex)

OUT = Path(__file__).parent / "golden"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*")
PATTERNS = {
    "llama3": SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "qwen2": SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES,
    "qwen35": SUFFIX + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" +
              SPACES,
    "o200k": CASED[0] + SUFFIX + "?|" + CASED[1] + SUFFIX +
             r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES,
    "tekken": CASED[0] + "|" + CASED[1] + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + SPACES,
}
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
          r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
# What patterns, normalisers and models treat differently.
WORDS = ["the", "The", "camelCase", "HTMLParser", "it's", "IT'S", "'\u017f", "we'LL", " ", "  ", "\n", "\r\n",
         "\t", " \n ", "7", "1234567", "\u00b2\u00b3", "\u2167", "\u00e9", "e\u0301", "\u212b", "\u4e2d\u6587",
         "\u65e5\u672c\u8a9e", "\ud55c\uad6d", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e44\u0e17\u0e22", "\U0001f999",
         "\U0001f468\u200d\U0001f469", "!!!", "//\n", "$", "<|end|>", "<s>", "\u2581", "\u01c5", "\u02b0", "\u00aa",
         "\u00a0", "\u3000", "\u0301", "XML\u3042", "\u00df", "\u0130", "\ufb01", "'", "_", "\u0903", "\x01", "\x7f",
         "\u2028", "\x85", "\ufffd", "[MASK]", "na\u00efve", "walking", "walked", "earth", "heaven"]


def texts(count):
    draw = random.Random(7)
    return ["", " ", "Hello world", " In the beginning"] + [
        "".join(draw.choice(WORDS) + draw.choice(["", " "]) for _ in range(draw.randint(1, 9)))
        for _ in range(count)]


def small(tokenizer, name):
    """Saves it without white space."""
    text = json.loads(tokenizer.to_str())
    (OUT / f"{name}.json").write_text(json.dumps(text, ensure_ascii=False, separators=(",", ":")),
                                      encoding="utf8")


def byte_level(lines, pattern, normalizer, size=420):
    tokenizer = Tokenizer(models.BPE(ignore_merges=pattern == "llama3"))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pattern == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<s>", "<|end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def wordpiece(lines):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=360, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        limit_alphabet=90, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def sentencepiece_model(lines):
    (OUT / "lines.txt").write_text("\n".join(lines), encoding="utf8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(OUT / "lines.txt"), model_prefix=str(OUT / "spm"), model_type="bpe",
        vocab_size=520, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, user_defined_symbols=["<|end|>"], split_digits=True,
        allow_whitespace_only_pieces=True, minloglevel=2, max_sentence_length=100000)
    (OUT / "lines.txt").unlink()
    (OUT / "spm.vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(OUT / "spm.model"))


def metaspace(spm):
    """The same vocabulary as tokenizer.json, as it is converted for Llama 2."""
    pieces = [spm.id_to_piece(i) for i in range(spm.vocab_size())]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = sorted((vocabulary[piece], piece[:cut], piece[cut:])
                    for piece in pieces for cut in range(1, len(piece))
                    if piece[:cut] in vocabulary and piece[cut:] in vocabulary and
                    not spm.is_byte(vocabulary[piece]) and not spm.is_control(vocabulary[piece])
                    and vocabulary[piece] > 3)
    tokenizer = Tokenizer(models.BPE(vocabulary, [(a, b) for _, a, b in merges], unk_token="<unk>",
                                     fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"),
                                                 normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                                           decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.add_tokens([AddedToken("<|end|>", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


CHATS = {
    "turns": [("user", " Hello\n"), ("assistant", "Hi there "), ("user", "2 + 2?")],
    "system": [("system", "Be brief. "), ("user", "Hello"), ("assistant", "Hi"), ("user", "Why?")],
}


def chats(templates):
    """What Jinja makes of conversations, as transformers runs it."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    cases = []
    for name, text in templates.items():
        for chat, turns in CHATS.items():
            for ask in (False, True):
                messages = [{"role": role, "content": content} for role, content in turns]
                try:
                    out = environment.from_string(text).render(
                        messages=messages, add_generation_prompt=ask, bos_token="<bos>",
                        eos_token="<eos>")
                except jinja2.exceptions.TemplateError:
                    out = None
                cases.append([name, turns, ask, out])
    (OUT / "chat.json").write_text(
        "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


def main():
    OUT.mkdir(exist_ok=True)
    lines = Path(sys.argv[1]).read_text(encoding="utf8")[:400000].split("\n") + WORDS * 3
    cases = []

    def record(name, tokenizer, count):
        for text in texts(count):
            ids = tokenizer.encode(text).ids
            cases.append([name, text, ids, tokenizer.decode(ids)])

    # One vocabulary, several patterns: gpt2 is stored, the test puts in the others.
    first = byte_level(lines, "gpt2", None)
    small(first, "gpt2")
    record("gpt2", first, 36)
    for pattern in PATTERNS:
        other = Tokenizer.from_str(first.to_str())
        other.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        if pattern == "qwen2":
            other.normalizer = normalizers.NFC()
        record(pattern, other, 36)

    pieces = wordpiece(lines)
    small(pieces, "wordpiece")
    record("wordpiece", pieces, 36)

    spm = sentencepiece_model(lines)
    for text in texts(36):
        if "<s>" not in text:
            ids = spm.encode(text)
            cases.append(["spm", text, [1] + ids, spm.decode(ids)])
    space = metaspace(spm)
    small(space, "metaspace")
    record("metaspace", space, 36)

    byte = {c: b for b, c in zip(range(256), printable())}
    ranks = {}
    for token, _ in sorted(first.get_vocab().items(), key=lambda item: item[1]):
        if token not in ("<s>", "<|end|>"):
            ranks[bytes(byte[c] for c in token)] = len(ranks)
    (OUT / "cl100k.tiktoken").write_text("".join(
        f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    encoding = tiktoken.Encoding("golden", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={})
    for text in texts(36):
        ids = encoding.encode_ordinary(text)
        cases.append(["tiktoken", text, ids, encoding.decode(ids)])

    if len(sys.argv) > 2:
        chats(json.loads(Path(sys.argv[2]).read_text(encoding="utf8")))
    (OUT / "cases.json").write_text(
        "[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


def printable():
    """The characters that byte-level vocabularies write for the bytes, by byte."""
    own = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    others = iter(range(256, 512))
    return [chr(b) if b in own else chr(next(others)) for b in range(256)]


if __name__ == "__main__":
    main()
