#!/usr/bin/env python3
"""Writes tiny random models of each family as Hugging Face's transformers saves them. train.py trains
them. models.test imports them.

    python3 make.py        (needs torch and transformers)
"""
import json
import os
import shutil

import torch
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
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
    torch.manual_seed(0)
    for number, (name, model, dtype, shards) in enumerate(models()):
        torch.manual_seed(number)
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


main()
