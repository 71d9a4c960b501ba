"""check_lora.py TMP MODEL...: trains adapters on models of this folder as train.py does by PEFT. Compares
the losses. Where PEFT's adapters are kept, compares the exported ones and the weights with adapters in
them, too.

`boa` is found by PATH.
"""
import json
import struct
import sys
from pathlib import Path

from check import HERE, boa, check_losses, sets, tensors

TARGETS = {"gpt2": '("block.qkv_w", "block.out_w")'}
SETTINGS = ["train.batch=1", "train.steps=10", "train.optimizer.lr=1e-2"]


def rows(tensor):
    (count, width), bits = tensor
    values = struct.unpack(f"<{count * width}f", bits)
    return [values[i * width:(i + 1) * width] for i in range(count)]


def distance(a, b):
    return max(abs(x - y) for one, two in zip(a, b, strict=True)
               for x, y in zip(one, two, strict=True))


def check(name, tmp):
    folder, spec, state = HERE / name, tmp / f"{name}.boa", tmp / f"{name}.state"
    boa("import", folder, "-o", spec, "--context", 16)
    targets = TARGETS.get(name, '("block.q_w", "block.v_w")')
    text = spec.read_text().replace("  optimizer =", "  adapters = lora(rank = 4, alpha = 8, "
                                    f"targets = {targets})\n  optimizer =")
    spec.write_text(text)
    boa("fmt", spec)

    # The losses are PEFT's.
    settings = SETTINGS + ["train.weights=f32"] # imported ones may be narrow
    if name == "bert":
        settings.append("train.objective.probability=0.5")
    check_losses(name, "lora", spec, HERE / "text.txt", tmp, "--weights", folder, "--state", state,
                 *sets(*settings))
    if not (HERE / "lora" / name).exists():
        print(f"{name}: all losses")
        return

    # So are the adapters, by name.
    adapter = tmp / f"{name}.adapter"
    boa("export", spec, "--state", state, "-o", adapter, "--adapter", "--base", name)
    ours, theirs = tensors(adapter), tensors(HERE / "lora" / name)
    assert ours.keys() == theirs.keys(), (sorted(ours), sorted(theirs))
    far = max(distance(rows(ours[key]), rows(theirs[key])) for key in ours)
    assert far < 1e-3, (name, far)
    config, wanted = (json.loads((path / "adapter_config.json").read_text())
                      for path in (adapter, HERE / "lora" / name))
    for key, value in config.items():
        same = sorted(value) == sorted(wanted[key]) if key == "target_modules" else \
            value == wanted[key]
        assert same or key == "target_modules", (key, value, wanted[key])
    for module in config["target_modules"]: # each names one kind, no more
        assert any(f".{module}.lora_A" in key for key in theirs), module

    # In the folder they are added to the weights, and nothing else has changed.
    out = tmp / f"{name}.out"
    boa("export", spec, "--state", state, "-o", out)
    before, after = tensors(folder), tensors(out)
    assert before.keys() == after.keys()
    merged = 0
    for key in before:
        part = f"base_model.model.{key.removesuffix('.weight')}.lora_"
        if part + "A.weight" not in ours:
            assert before[key] == after[key], key
            continue
        a, b, w = rows(ours[part + "A.weight"]), rows(ours[part + "B.weight"]), rows(before[key])
        product = [[8 / 4 * sum(b[i][k] * a[k][j] for k in range(4)) for j in range(len(a[0]))]
                   for i in range(len(b))]
        if config["fan_in_fan_out"]:
            product = list(zip(*product))
        wanted = [[x + y for x, y in zip(*both)] for both in zip(w, product, strict=True)]
        assert distance(wanted, rows(after[key])) < 1e-6, key
        assert distance(w, rows(after[key])) > 1e-3, key
        merged += 1
    assert 2 * merged == len(ours)
    print(f"{name}: all losses, {merged} weights with adapters")


def main():
    tmp = Path(sys.argv[1])
    for name in sys.argv[2:]:
        check(name, tmp)


main()
