#!/usr/bin/env python3
"""Trains LoRA adapters on models of this folder with PEFT, in f64, and writes lora.json: the losses of
ten steps of AdamW. The folders in lora/ are the adapters after them, as PEFT saves them.

Data are those of make.py. B begins with zeros, and A as Boa makes it (runtime/trainer/initialize.cpp).

    python3 lora.py        (needs torch, transformers and peft)
"""
import json
import math
import os
import struct

import peft
import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXT, STEPS, RATE, SEED, RANK, ALPHA = 16, 10, 1e-2, 1, 4, 8
MASK64 = (1 << 64) - 1
# Class, targets, and the parameters that a layer of the spec has before its adapters.
MODELS = {"llama": (transformers.LlamaForCausalLM, ["q_proj", "v_proj"], 9),
          "gpt2": (transformers.GPT2LMHeadModel, ["c_attn", "attn.c_proj"], 12)}


def hash64(*key):
    """SplitMix64's finaliser, once for each word of the key."""
    x = 0
    for word in key:
        x = (x ^ word) + 0x9e3779b97f4a7c15 & MASK64
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK64
        x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK64
        x ^= x >> 31
    return x


def initial(layer, number, rows, columns):
    """A, of f32. The layers are the second group of the spec."""
    key, width = hash64(SEED, 1, layer, number), 1 / math.sqrt(columns)
    values = [width * (2 * (hash64(key, i) >> 11) / 2.0**53 - 1) for i in range(rows * columns)]
    values = struct.unpack(f"{len(values)}f", struct.pack(f"{len(values)}f", *values))
    return torch.tensor(values, dtype=torch.float64).reshape(rows, columns)


def train(name):
    kind, targets, count = MODELS[name]
    base = kind.from_pretrained(os.path.join(HERE, name), dtype=torch.float32).double().train()
    model = peft.get_peft_model(base, peft.LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=targets, task_type="CAUSAL_LM",
        fan_in_fan_out=name == "gpt2"))
    for path, parameter in model.named_parameters():
        if ".lora_A." in path:
            layer = int(next(word for word in path.split(".") if word.isdigit()))
            at = [target in path for target in targets].index(True)
            parameter.data = initial(layer, count + 2 * at, *parameter.shape)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0)
    text = open(os.path.join(HERE, "text.txt"), "rb").read()
    tokens, targets = list(text[:CONTEXT]), list(text[1:CONTEXT + 1])
    losses = []
    for _ in range(STEPS):
        logits = model(input_ids=torch.tensor([tokens])).logits
        loss = torch.nn.functional.cross_entropy(logits[0], torch.tensor(targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    folder = os.path.join(HERE, "lora", name)
    model.float().save_pretrained(folder)
    os.remove(os.path.join(folder, "README.md"))
    # The path of this machine is no part of it.
    path = os.path.join(folder, "adapter_config.json")
    with open(path) as file:
        config = json.load(file)
    config["base_model_name_or_path"] = name
    with open(path, "w") as file:
        json.dump(config, file, indent=2, sort_keys=True)
        file.write("\n")
    return losses


def main():
    with open(os.path.join(HERE, "lora.json"), "w") as file:
        json.dump({name: train(name) for name in MODELS}, file, indent=2)
        file.write("\n")


main()
