"""gguf.py TMP MODEL...: writes models of this folder as GGUF files, in that format's names and
layouts, and compares: the import of the file gives the spec of the folder, and an export of its
state has the folder's tensors, bit for bit.

`boa` is found by PATH.
"""
import json
import math
import struct
import sys
from pathlib import Path

from check import HERE, boa, tensors

NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
         "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "gate_proj": "ffn_gate",
         "up_proj": "ffn_up", "down_proj": "ffn_down", "wte": "token_embd",
         "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
         "c_attn": "attn_qkv", "c_fc": "ffn_up", "qkv_proj": "attn_qkv", "gate_up_proj": "ffn_up",
         "post_feedforward_layernorm": "post_ffw_norm"}
# Whose norm behind attention has a name of its own.
POST_NORMS = ("olmo2", "seed_oss")
SCALES = {"attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier",
          "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling"}


def rope_of(config):
    """As transformers 5 writes it; transformers 4 had two keys."""
    return config.get("rope_parameters") or {
        **(config.get("rope_scaling") or {}), "rope_theta": config.get("rope_theta")}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def entry(key, value):
    kind, body = ((8, text(value)) if isinstance(value, str) else
                  (9, struct.pack("<IQ", 8, len(value)) + b"".join(map(text, value)))
                  if isinstance(value, list) else
                  (4, struct.pack("<I", value)) if isinstance(value, int) else
                  (6, struct.pack("<f", value)))
    return text(key) + struct.pack("<I", kind) + body


def paired(rows, heads):
    """The halves of each head, row by row in turn."""
    size = len(rows) // heads
    return [rows[h * size + half * size // 2 + i]
            for h in range(heads) for i in range(size // 2) for half in range(2)]


def renamed(name, model):
    *path, stem, kind = name.split(".")
    if model in POST_NORMS and stem == "post_attention_layernorm":
        return name.replace("model.layers.", "blk.").replace("post_attention_layernorm", "post_attention_norm")
    layer = next((f"blk.{part}." for part in path if part.isdigit()), "")
    if stem == "c_proj":
        return f"{layer}{'attn_output' if 'attn' in path else 'ffn_down'}.{kind}"
    return f"{layer}{NAMES[stem]}.{kind}"


def convert(config, found):
    kind = config["model_type"]
    for name, (shape, bits) in found.items():
        new = renamed(name, kind)
        if len(shape) == 2:
            width = shape[1] * 4
            rows = [bits[i * width:(i + 1) * width] for i in range(shape[0])]
            if kind in ("llama", "granite") and ("attn_q." in new or "attn_k." in new):
                heads = config["num_attention_heads" if "attn_q" in new else "num_key_value_heads"]
                bits = b"".join(paired(rows, heads))
            elif kind == "gpt2" and new.startswith("blk."):
                bits = b"".join(row[4 * c:4 * c + 4] for c in range(shape[1]) for row in rows)
                shape = shape[::-1]
        yield new, shape, bits
    rope = rope_of(config)
    if rope.get("rope_type") == "llama3":
        half, factor, context = config["head_dim"] // 2, rope["factor"], 32
        divisors = []
        for i in range(half):
            turns = context / (2 * math.pi * rope["rope_theta"] ** (i / half))
            smooth = min(max((turns - 1) / 3, 0), 1)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
        yield "rope_freqs.weight", [half], struct.pack(f"<{half}f", *divisors)


def write(path, config, found, **more):
    kind = config["model_type"]
    keys = {"general.architecture": kind}
    names = {"block_count": "num_hidden_layers", "context_length": "max_position_embeddings",
             "embedding_length": "hidden_size", "feed_forward_length": "intermediate_size",
             "attention.head_count": "num_attention_heads",
             "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim",
             "attention.layer_norm_rms_epsilon": "rms_norm_eps"}
    if kind == "gpt2":
        names = {"block_count": "n_layer", "context_length": "n_positions",
                 "embedding_length": "n_embd", "attention.head_count": "n_head",
                 "attention.layer_norm_epsilon": "layer_norm_epsilon"}
        keys["gpt2.feed_forward_length"] = 4 * config["n_embd"]
    else:
        if kind == "granite":
            names.update(SCALES)
        if kind == "phi3":
            keys["phi3.attention.sliding_window"] = config["sliding_window"] or 0
            keys["phi3.rope.scaling.original_context_length"] = config["original_max_position_embeddings"]
        keys[f"{kind}.rope.freq_base"] = float(rope_of(config)["rope_theta"])
    for key, name in names.items():
        keys[f"{kind}.{key}"] = config[name]
    if rope_of(config).get("rope_type") == "llama3":
        keys[f"{kind}.rope.scaling.original_context_length"] = 32
    keys.update(more)
    parts = list(convert(config, found))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(parts), len(keys))
    header += b"".join(entry(key, value) for key, value in keys.items())
    data = b""
    for name, shape, bits in parts:
        header += text(name) + struct.pack("<I", len(shape))
        header += b"".join(struct.pack("<Q", size) for size in shape[::-1])
        header += struct.pack("<IQ", 0, len(data))
        data += bits + bytes(-len(bits) % 32)
    path.write_bytes(header + bytes(-len(header) % 32) + data)


def read(path):
    """Name: shape and bits, as of f32. Those of quantized tensors are None."""
    data, at = path.read_bytes(), 8

    def take(form):
        nonlocal at
        size = struct.calcsize(form)
        at += size
        return struct.unpack_from(form, data, at - size)[0]

    def take_text():
        nonlocal at
        size = take("<Q")
        at += size
        return data[at - size:at].decode()

    def skip(kind):
        if kind == 8:
            take_text()
        elif kind == 9:
            inner, count = take("<I"), take("<Q")
            for _ in range(count):
                skip(inner)
        else:
            take("<" + "BbHhIif?  Qqd"[kind])

    count, keys = take("<Q"), take("<Q")
    for _ in range(keys):
        take_text()
        skip(take("<I"))
    entries = [(take_text(), [take("<Q") for _ in range(take("<I"))][::-1], take("<I"), take("<Q"))
               for _ in range(count)]
    begin, found = -(-at // 32) * 32, {}
    for name, shape, kind, offset in entries:
        size = math.prod(shape)
        narrow = data[begin + offset:begin + offset + 2 * size]
        found[name] = shape, (
            data[begin + offset:begin + offset + 4 * size] if kind == 0 else
            struct.pack(f"<{size}f", *struct.unpack(f"<{size}e", narrow)) if kind == 1 else
            b"".join(b"\0\0" + narrow[i:i + 2] for i in range(0, 2 * size, 2)) if kind == 30 else
            None)
    return found


def main():
    tmp = Path(sys.argv[1])
    for name in sys.argv[2:]:
        config = json.loads((HERE / name / "config.json").read_text())
        found = tensors(HERE / name)
        file, spec, state, out = (tmp / f"{name}.{end}" for end in ("gguf", "g.boa", "g", "g.out"))
        write(file, config, found)
        boa("import", file, "-o", spec, "--state", state, "--context", 16)
        boa("import", HERE / name, "-o", tmp / f"{name}.f.boa", "--context", 16)
        first, *lines = map(str.split, spec.read_text().splitlines())
        assert first[-1] == f"{name}.gguf.", first
        # The file does not say how the model was initialised.
        folder = (tmp / f"{name}.f.boa").read_text().replace("normal(0.2)", "normal(0.02)")
        assert lines == [line.split() for line in folder.splitlines()[1:]], name
        boa("export", spec, "--state", state, "-o", out)
        assert tensors(out) == found, name
        print(f"{name}.gguf: as the folder")
    write(tmp / "odd.gguf", config, found, **{f"{config['model_type']}.logit_scale": 2.0})


if __name__ == "__main__":
    main()
