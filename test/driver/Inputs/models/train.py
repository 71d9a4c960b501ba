#!/usr/bin/env python3
"""Computes the models of this folder with PyTorch, in f64. Writes logits.json: of each model that predicts
the next token, its logits behind "In the be". Writes losses.json: of each model the losses of ten steps of
AdamW without weight decay.

    plain   all weights
    mask    the same, where only the last letters of the sequence and its end are targets
    lora    adapters alone, by PEFT
    rslora  the same with use_rslora
    saved   the same with modules_to_save, too
    more    going on with the adapters of `saved`, as their folder has them

A sequence is the first 16 bytes of text.txt, which has no more than one. For `mask` it is the record of
pairs.jsonl, as letters/tokenizer.json encodes it: letters are their bytes. BERT has masks of its own:
they are written here again, from the description of the trainer. The folders in lora/ are adapters after
their training, as PEFT saves them, those of `saved` behind a dot. B begins with zeros, and A as Boa makes it
(runtime/weights/initial_values.cpp).

    python3 train.py [MODEL...]        (needs torch, transformers and peft; without names it computes all)
"""
import json
import math
import os
import struct
import sys

import peft
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXT, STEPS, SEED, RANK, ALPHA = 16, 10, 1, 4, 8
RATE, ADAPTERS_RATE = 1e-3, 1e-2
PROMPT = b"In the be"
END = 1 # the token behind a completion
LLAMA = ["q_proj", "v_proj"]
# Targets of adapters, and the parameters that a layer of the spec has before its adapters.
MODELS = {"llama": (LLAMA, 9), "llama-tied": (LLAMA, 9), "llama3": (LLAMA, 9),
          "mistral": (LLAMA, 9), "qwen2": (LLAMA, 12), "qwen3": (LLAMA, 11),
          "gpt2": (["c_attn", "attn.c_proj"], 12), "bert": (["query", "value"], 16),
          "olmo2": (LLAMA, 11), "granite": (LLAMA, 9), "seed_oss": (LLAMA, 12),
          "starcoder2": (LLAMA, 16), "phi3": (["qkv_proj"], 6),
          "falcon": (["query_key_value"], 6), "distilbert": (["q_lin", "v_lin"], 16),
          "bigcode": (["c_attn", "attn.c_proj"], 12), "hunyuan": (LLAMA, 11), "roberta": (["query", "value"], 16)}
MASKED = ("bert", "distilbert", "roberta")
SAVED = ("llama", "gpt2", "bigcode") # whose adapters are kept
# modules_to_save; "norm" is all of the norms.
WHOLE = {"llama": ["lm_head", "norm"], "gpt2": ["ln_1", "ln_f"], "llama-tied": ["embed_tokens"]}
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


# --- Sequences: tokens, and the targets of their positions; -100 is none -----------------------


def text():
    with open(os.path.join(HERE, "text.txt"), "rb") as file:
        data = file.read()
    return list(data[:CONTEXT]), list(data[1:CONTEXT + 1])


def pair():
    with open(os.path.join(HERE, "pairs.jsonl")) as file:
        record = json.load(file)
    prompt, completion = record["prompt"].encode(), record["completion"].encode()
    tokens = [*prompt, *completion, END]
    assert len(tokens) == CONTEXT + 1
    return tokens[:-1], [-100] * (len(prompt) - 1) + tokens[len(prompt):]


def masked(step, probability=0.5, token=3):
    """BERT's."""
    key = hash64(2, SEED, step, 0)
    tokens, targets, order = text()[0], [-100] * CONTEXT, list(range(CONTEXT))
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


def train(model, parameters, rate, sequence):
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0)
    losses = []
    for step in range(1, STEPS + 1):
        tokens, targets = sequence(step)
        logits = model(input_ids=torch.tensor([tokens])).logits
        loss = torch.nn.functional.cross_entropy(logits[0], torch.tensor(targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def read(name):
    kind = transformers.AutoModelForMaskedLM if name in MASKED else transformers.AutoModelForCausalLM
    # Files store several types.
    return kind.from_pretrained(os.path.join(HERE, name), dtype=torch.float32).double().train()


def initial(layer, number, rows, columns):
    """A, of f32. The layers are the second group of the spec."""
    key, width = hash64(SEED, 1, layer, number), 1 / math.sqrt(columns)
    values = [width * (2 * (hash64(key, i) >> 11) / 2.0**53 - 1) for i in range(rows * columns)]
    values = struct.unpack(f"{len(values)}f", struct.pack(f"{len(values)}f", *values))
    return torch.tensor(values, dtype=torch.float64).reshape(rows, columns)


def adapt(name, **more):
    targets, count = MODELS[name]
    model = peft.get_peft_model(read(name), peft.LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=targets, fan_in_fan_out=name == "gpt2",
        task_type=None if name in MASKED else "CAUSAL_LM", **more))
    for path, parameter in model.named_parameters():
        if ".lora_A." in path:
            layer = int(next(word for word in path.split(".") if word.isdigit()))
            at = [f".{target}." in path for target in targets].index(True)
            parameter.data = initial(layer, count + 2 * at, *parameter.shape)
    return model


def save(name, model, folder):
    folder = os.path.join(HERE, "lora", folder)
    model.float().save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    # The path of this machine is no part of it.
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    config["base_model_name_or_path"] = name
    for key in ("target_modules", "modules_to_save"):
        config[key] = config[key] and sorted(config[key]) # of a set
    with open(path, "w") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")


def train_adapters(model, sequence):
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return train(model, trained, ADAPTERS_RATE, sequence)


def go_on(name):
    folder = os.path.join(HERE, "lora", name + ".saved")
    return peft.PeftModel.from_pretrained(read(name), folder, is_trainable=True).double().train()


def write(name, values):
    path = os.path.join(HERE, name)
    with open(path) as file:
        values = {**json.load(file), **values}
    with open(path, "w") as file:
        json.dump(values, file, indent=1)
        file.write("\n")


def main():
    losses, logits = {}, {}
    for name in sys.argv[1:] or MODELS:
        plain = masked if name in MASKED else lambda step: text()
        model, adapted = read(name), adapt(name)
        if name not in MASKED:
            with torch.no_grad():
                found = model(input_ids=torch.tensor([list(PROMPT)])).logits[0, -1]
            logits[name] = [round(value, 6) for value in found.tolist()]
        losses[name] = {"plain": train(model, model.parameters(), RATE, plain)}
        if name not in MASKED:
            model = read(name)
            losses[name]["mask"] = train(model, model.parameters(), RATE, lambda step: pair())
        losses[name]["lora"] = train_adapters(adapted, plain)
        if name in SAVED:
            save(name, adapted, name)
            losses[name]["rslora"] = train_adapters(adapt(name, use_rslora=True), plain)
        if name in WHOLE:
            adapted = adapt(name, use_rslora=True, modules_to_save=WHOLE[name],
                            ensure_weight_tying=name == "llama-tied")
            losses[name]["saved"] = train_adapters(adapted, plain)
            save(name, adapted, name + ".saved")
            losses[name]["more"] = train_adapters(go_on(name), plain)
    write("losses.json", losses)
    write("logits.json", logits)


main()
