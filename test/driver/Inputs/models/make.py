#!/usr/bin/env python3
"""Writes tiny random models of each family as Hugging Face's transformers saves them. train.py trains
them. models.test imports them. Those in by-hand.test are of families that no table knows.

    python3 make.py [MODEL...]        (needs torch and transformers; without names it makes all)
"""
import json
import os
import shutil
import sys

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

BIGCODE = dict(vocab_size=128, n_positions=32, n_embd=24, n_layer=2, n_head=3, n_inner=40, multi_query=True,
               initializer_range=0.2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
               activation_function="gelu_pytorch_tanh", bos_token_id=0, eos_token_id=1)

FALCON = dict(vocab_size=128, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, alibi=False, bias=False,
              multi_query=True, parallel_attn=True, new_decoder_architecture=False,
              max_position_embeddings=64, initializer_range=0.2, hidden_dropout=0.0,
              attention_dropout=0.0, bos_token_id=0, eos_token_id=1)
DISTILBERT = dict(vocab_size=128, dim=24, n_layers=2, n_heads=3, hidden_dim=40,
                  max_position_embeddings=24, initializer_range=0.2, dropout=0.0,
                  attention_dropout=0.0, activation="gelu")


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
    half = torch.float16
    six = {**SMALL, "head_dim": 6}
    yield "olmo2", t.Olmo2ForCausalLM(t.Olmo2Config(**six)), half, None
    yield "granite", t.GraniteForCausalLM(t.GraniteConfig(
        **six, embedding_multiplier=3.0, attention_multiplier=0.3, residual_multiplier=0.5,
        logits_scaling=2.0, tie_word_embeddings=True)), half, None
    yield "seed_oss", t.SeedOssForCausalLM(t.SeedOssConfig(
        **SMALL, attention_bias=True, attention_out_bias=False, attention_dropout=0.0,
        residual_dropout=0.0)), half, None
    yield "starcoder2", t.Starcoder2ForCausalLM(t.Starcoder2Config(
        **{key: six[key] for key in six if key != "rms_norm_eps"}, use_bias=True, norm_epsilon=1e-5, sliding_window=8, residual_dropout=0.0,
        embedding_dropout=0.0, attention_dropout=0.0)), half, None
    yield "phi3", t.Phi3ForCausalLM(t.Phi3Config(**six, pad_token_id=0)), half, None
    yield "falcon", t.FalconForCausalLM(t.FalconConfig(**FALCON)), half, None
    yield "distilbert", t.DistilBertForMaskedLM(t.DistilBertConfig(**DISTILBERT)), half, None
    yield "bigcode", t.GPTBigCodeForCausalLM(t.GPTBigCodeConfig(**BIGCODE)), half, None
    yield "hunyuan", t.HunYuanDenseV1ForCausalLM(t.HunYuanDenseV1Config(
        **SMALL, tie_word_embeddings=True)), half, None
    yield "roberta", t.RobertaForMaskedLM(t.RobertaConfig(**{
        **BERT, "type_vocab_size": 1, "pad_token_id": 1})), half, None


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
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
        model.to(dtype)
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
        if name in ("bert", "distilbert"):
            with open(os.path.join(folder, "vocab.txt"), "w") as file:
                file.write("[PAD]\n[UNK]\n[CLS]\n[MASK]\n")
        if name in ("llama3", "mistral"):
            age(folder)


main()
