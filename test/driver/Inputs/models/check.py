"""check.py TMP MODEL...: imports models of this folder, exports them, and compares the exported tensors
with the imported ones, bit for bit. Compares logits, and losses of trainings with and without a mask, with those of
PyTorch (train.py). A model with a spec in this folder is of no family that is imported.

`boa` is found by PATH.
"""
import json
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ADAMW = ["train.batch=1", "train.steps=10", "train.optimizer.lr=1e-3"]
MASKED = ("bert", "distilbert", "roberta")
PAIRS = f'chat("{HERE}/pairs.jsonl", tokenizer = "{HERE}/letters/tokenizer.json")'


def boa(*arguments):
    done = subprocess.run(["boa", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def tensors(folder):
    """Name: shape and bits, as of f32."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        for name, entry in json.loads(data[8:8 + length]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            bits = data[begin:end]
            if entry["dtype"] == "BF16":
                bits = b"".join(b"\0\0" + bits[i:i + 2] for i in range(0, len(bits), 2))
            elif entry["dtype"] == "F16":
                values = struct.unpack(f"<{len(bits) // 2}e", bits)
                bits = struct.pack(f"<{len(values)}f", *values)
            found[name] = entry["shape"], bits
    return found


def check_losses(name, way, spec, data, tmp, *arguments, within=1e-4):
    metrics = tmp / f"{name}.{way}.jsonl"
    metrics.unlink(missing_ok=True)
    boa("train", spec, "--data", data, "--metrics", metrics, "--quiet", *arguments)
    found = [line["loss"] for line in map(json.loads, metrics.read_text().splitlines())
             if "loss" in line]
    expected = json.loads((HERE / "losses.json").read_text())[name][way]
    assert len(found) == len(expected) == 10, found
    worst = max(abs(a - b) for a, b in zip(expected, found))
    assert worst < within, (name, way, worst, expected, found)


def check_logits(name, spec, folder, tmp):
    logits = tmp / f"{name}.logits"
    boa("sample", spec, "--weights", folder, "--prompt", "In the be", "--length", 1, "--logits", logits,
        *sets(f"train.data={HERE}/text.txt", "train.weights=f32"))
    expected = json.loads((HERE / "logits.json").read_text())[name]
    found = struct.unpack(f"<{len(expected)}f", logits.read_bytes())
    worst = max(abs(a - b) for a, b in zip(expected, found))
    assert worst < 1e-4 * max(map(abs, expected)), (name, worst, expected, found)


def is_by_hand(name):
    return (HERE / f"{name}.boa").exists()


def export(name, spec, *arguments):
    return boa("export", spec, *arguments, *(["--config", HERE / name] if is_by_hand(name) else []))


def bring(name, spec, state=None):
    """The spec, and a state with the weights of the model."""
    if not is_by_hand(name):
        boa("import", HERE / name, "-o", spec, "--context", 16, *(["--state", state] if state else []))
        return
    spec.write_text((HERE / f"{name}.boa").read_text())
    if state: # after a step that is too small to change a weight
        boa("train", spec, "--weights", HERE / name, "--state", state, "--data", HERE / "text.txt", "--quiet",
            *sets("train.batch=1", "train.steps=1", "train.optimizer=sgd(lr = 1e-30)"))


def check(name, tmp):
    folder, spec, state = HERE / name, tmp / f"{name}.boa", tmp / f"{name}.state"
    bring(name, spec, state)
    boa("fmt", "--check", spec)

    # What no step has trained goes out as it came in, also in several files. No limit of memory
    # is for it: it holds a few rows.
    narrow = json.loads((folder / "config.json").read_text()).get("dtype") == "bfloat16"
    out = tmp / f"{name}.out"
    export(name, spec, "--state", state, "-o", out, "--shard", "20KB",
        *sets("machine.device.memory=16KiB", "machine.host.memory=16KiB"),
        *(["--type", "bf16"] if narrow else []))
    assert tensors(out) == tensors(folder), name
    assert len(list(out.glob("*.safetensors"))) > 1

    # The losses are PyTorch's: the state's, and those of the folder's weights with the spec.
    more = sets(*ADAMW, *(["train.objective.probability=0.5"] if name in MASKED else []),
                *(["train.weights=f32"] if narrow else []))
    if name == "llama":
        expected = json.loads((HERE / "losses.json").read_text())[name]["plain"]
        one = tmp / "one.txt" # what is trained on: the last byte of the text is there to validate
        one.write_bytes((HERE / "text.txt").read_bytes()[:17])
        said = boa("evaluate", spec, "--state", state, "--data", one)
        assert said.endswith(" over 16 targets in 1 sequence\n"), said
        assert abs(float(said.split("loss ")[1].split(",")[0]) - expected[0]) < 1e-4, said
    begin = ["--weights", folder, "--state", tmp / f"{name}.other"] if narrow or is_by_hand(name) else \
        ["--state", state, "--resume"]
    check_losses(name, "plain", spec, HERE / "text.txt", tmp, *begin, *more)
    if name not in MASKED: # which have masks anyway, and predict no next token
        check_logits(name, spec, folder, tmp)
        check_losses(name, "mask", spec, PAIRS, tmp, "--weights", folder, "--state",
                     tmp / f"{name}.masked", *more)
    print(f"{name}: {len(tensors(out))} tensors, all losses")


def main():
    tmp = Path(sys.argv[1])
    for name in sys.argv[2:]:
        check(name, tmp)


if __name__ == "__main__":
    main()
