"""dropout.py MODEL DATA TMP: trains adapters with dropout on a model of Hugging Face, in several orders, places and
micro-batches. What is dropped follows from the step, the sequence, the position and the layer alone, so what may not
change a bit of a training without dropout changes none of one with it, and the rest changes as little. test/e2e/run-models has more plans.

`boa` is found by PATH.
"""
import json
import subprocess
import sys
from pathlib import Path

SETTINGS = ["train.batch=4", "train.steps=3", "train.optimizer.lr=1e-2", "train.weights=f32"]
PLANS = {
    "vertical": "vertical(delay = 0, snake = false)",
    "horizontal": "horizontal(delay = 0)",
    "delayed": "vertical(delay = 0.25, snake = false)",
    "saving": "vertical(delay = 0, snake = false, recompute = false)",
}


def boa(*arguments):
    done = subprocess.run(["boa", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def run(tmp, name, plan, dropout=0.5, micro_batch=1, place="device", more=()):
    """The losses and the trained weights."""
    metrics, state = tmp / f"{name}.jsonl", tmp / name
    settings = SETTINGS + [f"plan.schedule={plan}", f"plan.micro_batch={micro_batch}", f"plan.place={place}",
                           f"train.adapters.dropout={dropout}"]
    boa("train", tmp / "spec.boa", "--weights", sys.argv[1], "--data", sys.argv[2], "--state", state, "--metrics",
        metrics, "--quiet", *(word for setting in settings for word in ("--set", setting)), *more)
    losses = [json.loads(line)["loss"] for line in metrics.read_text().splitlines() if '"loss"' in line]
    return losses, (state / "model.safetensors").read_bytes()


def worst(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def main():
    tmp = Path(sys.argv[3])
    boa("import", sys.argv[1], "-o", tmp / "spec.boa", "--context", 16, "--lora")
    boa("import", sys.argv[1], "-o", tmp / "bare.boa", "--context", 16)
    open_losses, open_bits = run(tmp, "open", PLANS["vertical"], dropout=0)
    losses, bits = run(tmp, "vertical", PLANS["vertical"])
    # Adapters begin with nothing, so the first loss is the same.
    assert losses[0] == open_losses[0] and worst(losses, open_losses) > 1e-3, (losses, open_losses)

    # An order that changes no bit without dropout changes none with it.
    for name, plan in PLANS.items():
        same = run(tmp, f"open.{name}", plan, dropout=0)[1] == open_bits
        found, other = run(tmp, f"order.{name}", plan)
        print(f"{name}: {'no bit' if same else 'some bits'}")
        assert worst(found, losses) < 1e-5 and (not same or other == bits), (name, found, losses)
    assert run(tmp, "place", PLANS["vertical"], place="host 40%, ssd")[1] == bits
    found = run(tmp, "micro", PLANS["vertical"], micro_batch=2)[0]
    assert worst(found, losses) < 1e-5, (found, losses)

    # A run that was broken off goes on with the same, where the spec leaves its adapters to the state.
    run(tmp, "broken", PLANS["vertical"], more=["--steps", 2])
    metrics = tmp / "resumed.jsonl"
    boa("train", tmp / "bare.boa", "--data", sys.argv[2], "--state", tmp / "broken", "--resume", "--quiet", "--metrics",
        metrics, *(word for setting in SETTINGS + [f"plan.schedule={PLANS['vertical']}", "plan.micro_batch=1"]
                   for word in ("--set", setting)))
    assert (tmp / "broken" / "model.safetensors").read_bytes() == bits
    # An evaluation drops nothing, and a sample has none.
    states = [boa("evaluate", tmp / "spec.boa", "--state", tmp / name, "--data", sys.argv[1] + "/config.json", "--set",
                  f"train.adapters.dropout={dropout}", "--set", "plan.micro_batch=1")
              for name, dropout in (("vertical", 0.5), ("vertical", 0))]
    assert states[0] == states[1], states
    boa("sample", tmp / "spec.boa", "--state", tmp / "vertical", "--set", f"train.data={sys.argv[2]}", "--prompt", "In",
        "--length", 4)
    print("the same bits")


main()
