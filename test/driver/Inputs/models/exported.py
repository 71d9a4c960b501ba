#!/usr/bin/env python3
"""Imports the models of this folder, trains each for a step, and exports them. transformers opens the folders:
its logits from them are those of Boa's losses.

    python3 exported.py        (needs torch, transformers, and `boa` by PATH)
"""
import json
import tempfile
from pathlib import Path

import torch
import transformers

from check import ADAMW, HERE, boa, sets

CONTEXT = 16
TEXT = (HERE / "text.txt").read_bytes()


def loss_of(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).double()
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([list(TEXT[:CONTEXT])])).logits[0]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(list(TEXT[1:CONTEXT + 1]))).item(), logits


def check(name, tmp):
    spec, state, metrics = tmp / f"{name}.boa", tmp / f"{name}.state", tmp / f"{name}.jsonl"
    boa("import", HERE / name, "-o", spec, "--context", CONTEXT)
    train = ["train", spec, "--state", state, "--data", HERE / "text.txt", "--quiet", *sets("train.weights=f32", *ADAMW)]
    boa(*train, "--weights", HERE / name, "--steps", 1)
    boa("export", spec, "--state", state, "-o", tmp / name)
    # The second step begins with the exported weights.
    boa(*train, "--resume", "--steps", 2, "--metrics", metrics)
    ours = json.loads(metrics.read_text().splitlines()[-1])["loss"]
    theirs, _ = loss_of(tmp / name)
    assert abs(ours - theirs) < 1e-4, (name, ours, theirs)
    print(f"{name}: {ours:.6f}, transformers {theirs:.6f}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for folder in sorted(HERE.iterdir()):
            if (folder / "config.json").exists() and folder.name != "bert":
                check(folder.name, Path(tmp))


main()
