"""check_lora.py TMP MODEL...: trains adapters on models of this folder as train.py does by PEFT. Compares
the losses. Where PEFT's adapters are kept, compares the exported ones and the weights with adapters in
them, too. MODEL:WAY is another way of train.py: rslora, saved with what goes on from it.

`boa` is found by PATH.
"""
import json
import struct
import sys
from pathlib import Path

from check import HERE, MASKED, boa, bring, check_losses, export, sets, tensors

TARGETS = {"gpt2": '("block.qkv_w", "block.out_w")', "bigcode": '("block.qkv_w", "block.o_w")',
           "phi3": '"block.qkv_w"', "falcon": '"block.qkv_w"'}
PEFT_TARGETS = {"gpt2": '("c_attn", "attn.c_proj")'}
WHOLE = {"llama": '("lm_head", "norm")', "gpt2": '("ln_1", "ln_f")', "llama-tied": '"embed_tokens"'}
SETTINGS = ["train.batch=1", "train.steps=10", "train.optimizer.lr=1e-2"]


def rows(tensor):
    shape, bits = tensor
    count, width = shape if len(shape) == 2 else (1, *shape)
    values = struct.unpack(f"<{count * width}f", bits)
    return [values[i * width:(i + 1) * width] for i in range(count)]


def distance(a, b):
    return max(abs(x - y) for one, two in zip(a, b, strict=True)
               for x, y in zip(one, two, strict=True))


def compare_adapters(ours, theirs):
    """Two folders of PEFT."""
    config, wanted = (json.loads((folder / "adapter_config.json").read_text())
                      for folder in (ours, theirs))
    for key, value in config.items():
        if key not in ("target_modules", "modules_to_save"): # by other names of the same
            assert value == wanted[key], (key, value, wanted[key])
    assert bool(config["modules_to_save"]) == bool(wanted["modules_to_save"])
    a, b = tensors(ours), tensors(theirs)
    assert a.keys() == b.keys(), (sorted(a), sorted(b))
    far = max(distance(rows(a[key]), rows(b[key])) for key in a)
    assert far < 1e-3, far
    return a, config


def check_way(name, way, tmp):
    """With PEFT's names, and the state's memory of its adapters."""
    folder, spec, state = HERE / name, tmp / f"{name}.plain.boa", tmp / f"{name}.{way}"
    if not spec.exists():
        bring(name, spec)
    targets = PEFT_TARGETS.get(name, '("q_proj", "v_proj")')
    whole = f", modules_to_save = {WHOLE[name]}" if way == "saved" else ""
    adapters = f"train.adapters=lora(rank = 4, alpha = 8, targets = {targets}, rslora = true{whole})"
    settings = sets(*SETTINGS, "train.weights=f32")
    check_losses(name, way, spec, HERE / "text.txt", tmp, "--weights", folder, "--state", state,
                 *settings, *sets(adapters), within=1e-5)
    if way != "saved":
        return print(f"{name}: {way}")
    ours, theirs, base = tmp / f"{name}.ours", HERE / "lora" / f"{name}.saved", ["--weights", folder]
    boa("export", spec, "--state", state, "-o", ours, "--adapter", "--base", name)
    parts = compare_adapters(ours, theirs)[0]
    # PEFT's folder is one to go on with, and so is ours.
    for begin in theirs, ours:
        state = tmp / f"{name}.more.{begin.name}"
        check_losses(name, "more", spec, HERE / "text.txt", tmp, *base, "--from", begin,
                     "--state", state, *settings, within=1e-5 if begin == theirs else 1e-4)
    print(f"{name}: saved, {len(parts)} tensors, more")


def check(name, tmp):
    folder, spec, state = HERE / name, tmp / f"{name}.boa", tmp / f"{name}.state"
    bring(name, spec)
    targets = TARGETS.get(name, '("block.q_w", "block.v_w")')
    text = spec.read_text().replace("  optimizer =", "  adapters = lora(rank = 4, alpha = 8, "
                                    f"targets = {targets})\n  optimizer =")
    spec.write_text(text)
    boa("fmt", spec)

    # The losses are PEFT's.
    settings = SETTINGS + ["train.weights=f32"] # imported ones may be narrow
    if name in MASKED:
        settings.append("train.objective.probability=0.5")
    check_losses(name, "lora", spec, HERE / "text.txt", tmp, "--weights", folder, "--state", state,
                 *sets(*settings))
    if not (HERE / "lora" / name).exists():
        print(f"{name}: all losses")
        return

    # So are the adapters, by name.
    adapter = tmp / f"{name}.adapter"
    export(name, spec, "--state", state, "-o", adapter, "--adapter", "--base", name)
    ours, config = compare_adapters(adapter, HERE / "lora" / name)
    theirs = tensors(HERE / "lora" / name)
    for module in config["target_modules"]: # each names one kind, no more
        assert any(f".{module}.lora_A" in key for key in theirs), module

    # In the folder they are added to the weights, and nothing else has changed.
    out = tmp / f"{name}.out"
    export(name, spec, "--state", state, "-o", out)
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
        name, _, way = name.partition(":")
        check_way(name, way, tmp) if way else check(name, tmp)


if __name__ == "__main__":
    main()
