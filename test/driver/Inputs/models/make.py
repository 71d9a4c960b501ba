#!/usr/bin/env python3
"""Writes tiny random models of each family as Hugging Face's transformers saves them, and
losses.json: how PyTorch trains them. models.test imports them (check.py).

All sequences are the first 16 bytes of text.txt: it is so short that a training has one place
to begin. The losses are of steps of AdamW without weight decay, in f64. BERT's masking is written
here again, from the description of the trainer.

    python3 make.py        (needs torch and transformers)
"""
import json
import os
import shutil

import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXT, STEPS, RATE, SEED = 16, 5, 1e-3, 1
TEXT = b"In the beginning G"
SMALL = dict(vocab_size=128, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, head_dim=8,
             max_position_embeddings=64, rms_norm_eps=1e-5, initializer_range=0.2,
             bos_token_id=0, eos_token_id=1)
LLAMA3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)
GPT2 = dict(vocab_size=128, n_positions=32, n_embd=24, n_layer=2, n_head=3,
            initializer_range=0.2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            bos_token_id=0, eos_token_id=1)
BERT = dict(vocab_size=128, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
            intermediate_size=40, max_position_embeddings=24, initializer_range=0.2,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, hidden_act="gelu")


def models():
    """Name, model, type, size of shards."""
    t = transformers
    yield "llama", t.LlamaForCausalLM(t.LlamaConfig(**SMALL)), torch.float32, "20KB"
    yield "llama-tied", t.LlamaForCausalLM(t.LlamaConfig(
        **SMALL, tie_word_embeddings=True)), torch.bfloat16, None
    yield "llama3", t.LlamaForCausalLM(t.LlamaConfig(
        **SMALL, rope_parameters=LLAMA3)), torch.float32, None
    yield "mistral", t.MistralForCausalLM(t.MistralConfig(
        **SMALL, sliding_window=8)), torch.float16, None
    yield "qwen2", t.Qwen2ForCausalLM(t.Qwen2Config(**{
        **SMALL, "head_dim": 6})), torch.float32, None
    yield "qwen3", t.Qwen3ForCausalLM(t.Qwen3Config(
        **SMALL, tie_word_embeddings=True)), torch.float32, None
    yield "gpt2", t.GPT2LMHeadModel(t.GPT2Config(**GPT2)), torch.float32, None
    yield "bert", t.BertForMaskedLM(t.BertConfig(**BERT)), torch.float32, None


# --- BERT's masking -------------------------------------------------------------------

MASK64 = (1 << 64) - 1


def hash64(*key):
    """SplitMix64's finaliser, once for each word of the key."""
    x = 0
    for word in key:
        x = (x ^ word) + 0x9e3779b97f4a7c15 & MASK64
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK64
        x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK64
        x ^= x >> 31
    return x


def masked(step, probability=0.5, token=3):
    key = hash64(2, SEED, step, 0)
    tokens, targets, order = list(TEXT[:CONTEXT]), [-100] * CONTEXT, list(range(CONTEXT))
    for i in range(round(probability * CONTEXT)):
        other = i + (hash64(key, i, 0) * (CONTEXT - i) >> 64)
        order[i], order[other] = order[other], order[i]
        targets[order[i]] = tokens[order[i]]
    for i in range(CONTEXT):
        kind = (hash64(key, i, 1) >> 11) / 2.0**53
        if targets[i] >= 0 and kind < 0.8:
            tokens[i] = token
        elif targets[i] >= 0 and kind < 0.9:
            tokens[i] = hash64(key, i, 2) * 128 >> 64
    return tokens, targets


# --- Training -------------------------------------------------------------------------


def train(model, bert):
    model = model.double().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0)
    losses = []
    for step in range(1, STEPS + 1):
        tokens, targets = masked(step) if bert else (TEXT[:CONTEXT], TEXT[1:CONTEXT + 1])
        logits = model(input_ids=torch.tensor([list(tokens)])).logits
        loss = torch.nn.functional.cross_entropy(logits[0], torch.tensor(list(targets)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def age(folder):
    """The configuration as transformers 4 wrote it."""
    path = os.path.join(folder, "config.json")
    with open(path) as file:
        config = json.load(file)
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope.get("rope_type") != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.46.0"
    with open(path, "w") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def main():
    with open(os.path.join(HERE, "text.txt"), "wb") as file:
        file.write(TEXT)
    losses = {}
    torch.manual_seed(0)
    for name, model, dtype, shards in models():
        torch.manual_seed(len(losses))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        model.to(dtype)
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
        if name == "bert":
            with open(os.path.join(folder, "vocab.txt"), "w") as file:
                file.write("[PAD]\n[UNK]\n[CLS]\n[MASK]\n")
        if name in ("llama3", "mistral"):
            age(folder)
        # Read again, since a conversion also rounds what is no weight.
        model = type(model).from_pretrained(folder, dtype=torch.float32)
        losses[name] = train(model, name == "bert")
    with open(os.path.join(HERE, "losses.json"), "w") as file:
        json.dump(losses, file, indent=2)
        file.write("\n")


main()
