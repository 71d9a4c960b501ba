"""Writes a tiny random Llama for the tokenizer of make-chat.py, with the chat template of chatml.

make-model.py FOLDER [--endless]

FOLDER has tokenizer.json. The weights are random, so that all that the model says it has learnt. With --endless its end
token never comes: the first value of every embedding is large, and the head counts it against that token.
"""
import json
import random
import struct
import sys
from pathlib import Path

VOCAB, WIDTH, HEADS, KV_HEADS, HIDDEN, DEPTH = 422, 48, 4, 2, 96, 2
END = 421
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
          "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
          "{% endif %}")


def shapes():
    narrow = WIDTH // HEADS * KV_HEADS
    yield "model.embed_tokens.weight", [VOCAB, WIDTH]
    for layer in range(DEPTH):
        name = f"model.layers.{layer}."
        yield name + "input_layernorm.weight", [WIDTH]
        yield name + "self_attn.q_proj.weight", [WIDTH, WIDTH]
        yield name + "self_attn.k_proj.weight", [narrow, WIDTH]
        yield name + "self_attn.v_proj.weight", [narrow, WIDTH]
        yield name + "self_attn.o_proj.weight", [WIDTH, WIDTH]
        yield name + "post_attention_layernorm.weight", [WIDTH]
        yield name + "mlp.gate_proj.weight", [HIDDEN, WIDTH]
        yield name + "mlp.up_proj.weight", [HIDDEN, WIDTH]
        yield name + "mlp.down_proj.weight", [WIDTH, HIDDEN]
    yield "model.norm.weight", [WIDTH]
    yield "lm_head.weight", [VOCAB, WIDTH]


def main():
    folder, rng, endless = Path(sys.argv[1]), random.Random(1), sys.argv[2:] == ["--endless"]
    header, data = {}, b""
    for name, shape in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0 if len(shape) == 1 else rng.gauss(0, 0.1) for _ in range(count)]
        if endless and name == "model.embed_tokens.weight":
            values[::WIDTH] = [1.0] * VOCAB
        elif endless and name == "lm_head.weight":
            values[::WIDTH] = [0.0] * VOCAB
            values[END * WIDTH] = -1000.0
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": WIDTH,
        "intermediate_size": HIDDEN, "num_hidden_layers": DEPTH, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
        "hidden_act": "silu", "tie_word_embeddings": False, "bos_token_id": 0, "eos_token_id": END,
        "torch_dtype": "float32"}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", "chat_template": CHATML}))


main()
