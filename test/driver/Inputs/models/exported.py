#!/usr/bin/env python3
"""Imports the models of this folder, trains each for a step, and exports them. transformers opens the folders:
its logits from them are those of Boa's losses. The same with adapters, which PEFT opens. Of a model that learns
masked tokens it compares the names alone.

    python3 exported.py [MODEL...]        (needs torch, transformers, peft, and `boa` by PATH)
"""
import json
import sys
import tempfile
from pathlib import Path

import peft
import torch
import transformers

from check import ADAMW, HERE, MASKED, boa, bring, export, sets
from check_lora import TARGETS

CONTEXT = 16
TEXT = (HERE / "text.txt").read_bytes()


def opened(folder, name):
    kind = transformers.AutoModelForMaskedLM if name in MASKED else transformers.AutoModelForCausalLM
    model, said = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not any(said.values()), (name, said)
    return model.double()


def loss_of(model):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([list(TEXT[:CONTEXT])])).logits[0]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(list(TEXT[1:CONTEXT + 1]))).item()


def compare(name, ours, theirs):
    assert name in MASKED or abs(ours - theirs) < 1e-4, (name, ours, theirs)
    print(f"{name}: {ours:.6f}, transformers {theirs:.6f}", flush=True)


def trained(name, tmp, spec, state, *arguments):
    """Exports what the first step has trained, and returns the loss of the second one."""
    metrics, out = tmp / f"{state.name}.jsonl", tmp / f"{state.name}.out"
    train = ["train", spec, "--state", state, "--data", HERE / "text.txt", "--quiet", *sets("train.weights=f32", *ADAMW)]
    boa(*train, "--weights", HERE / name, "--steps", 1)
    export(name, spec, "--state", state, "-o", out, *arguments)
    boa(*train, "--resume", "--steps", 2, "--metrics", metrics)
    return out, json.loads(metrics.read_text().splitlines()[-1])["loss"]


def check(name, tmp):
    spec = tmp / f"{name}.boa"
    bring(name, spec)
    out, loss = trained(name, tmp, spec, tmp / f"{name}.state")
    compare(name, loss, loss_of(opened(out, name)))
    targets = TARGETS.get(name, '("block.q_w", "block.v_w")')
    spec.write_text(spec.read_text().replace(
        "  optimizer", f"  adapters = lora(rank = 4, alpha = 8, targets = {targets})\n  optimizer"))
    out, loss = trained(name, tmp, spec, tmp / f"{name}.lora", "--adapter", "--base", name)
    adapted = peft.PeftModel.from_pretrained(opened(HERE / name, name), out).double()
    compare(f"{name}, adapters", loss, loss_of(adapted)) if name not in MASKED else None


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for folder in sorted(HERE.iterdir()):
            if (folder / "config.json").exists() and (len(sys.argv) == 1 or folder.name in sys.argv):
                check(folder.name, Path(tmp))


main()
