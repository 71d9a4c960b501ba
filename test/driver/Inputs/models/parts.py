"""parts.py TMP: specs whose parameters are parts of tensors of models in this folder. They train as PyTorch
does, and what they export are the tensors that they began with, bit for bit.

    rows      queries, keys and values of bigcode are rows of one tensor, which has no parameter of its own
    columns   those of gpt2, in which they are columns
    once      a layer that occurs once, without `*`
    fresh     a parameter without a name begins with its initial values

`boa` is found by PATH.
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

from check import ADAMW, HERE, boa, check_losses, sets, tensors


def apart(text, name, shapes, joined, parts):
    """The parameters qkv_w and qkv_b in three each."""
    lines = []
    for line in text.splitlines():
        if line.strip().startswith("param qkv_"):
            kind, tensor = line.split("qkv_")[1][0], line.split('"')[1]
            begin = "normal(0.2)" if kind == "w" else "zeros"
            for part, shape, ends in zip("qkv", shapes[kind], parts[kind]):
                lines.append(f'    param {part}_{kind}: {shape} = {begin} as "{tensor}{ends}"')
        elif "qkv" in line and "split" not in line and name == "bigcode":
            continue
        elif "split" in line:
            lines.append(joined)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def check(name, folder, text, tmp, way):
    spec, out = tmp / f"{way}.boa", tmp / f"{way}.out"
    spec.write_text(text)
    check_losses(name, "plain", spec, HERE / "text.txt", tmp, "--weights", folder, "--state", tmp / f"{way}.state",
                 *sets(*ADAMW))
    begin(spec, folder, tmp / f"{way}.begin")
    boa("export", spec, "--state", tmp / f"{way}.begin", "--config", folder, "-o", out)
    assert tensors(out) == tensors(folder), way
    print(f"{way}: all losses, {len(tensors(out))} tensors")


def begin(spec, folder, state):
    """A step that is too small to change a weight."""
    return boa("train", spec, "--weights", folder, "--state", state, "--data", HERE / "text.txt",
               *sets("train.batch=1", "train.steps=1", "train.optimizer=sgd(lr = 1e-30)"))


def unknown(name, tmp):
    """The folder as one of a family that no table knows."""
    folder = tmp / f"{name}.folder"
    shutil.copytree(HERE / name, folder)
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "own"
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def rows(tmp):
    text = (HERE / "bigcode.boa").read_text()
    shapes = {"w": ["[width, width]", "[head, width]", "[head, width]"], "b": ["[width]", "[head]", "[head]"]}
    parts = {kind: ["[:]", "[24:]", "[32:]"] for kind in "wb"}
    joined = "\n".join(["    let n = layer_norm(x, n1_w, n1_b)",
                        *(f"    let {p} = linear(n, transpose({p}_w), {p}_b)" for p in "qkv")])
    text = apart(text, "bigcode", shapes, joined, parts)
    check("bigcode", HERE / "bigcode", text, tmp, "rows")

    # A part may be one parameter's alone, and must be in the tensor.
    for wrong, where in ("[20:]", "two parameters have this name"), ("[36:]", "expected rows for [8, 24]"):
        spec = tmp / "wrong.boa"
        spec.write_text(text.replace('c_attn.weight[32:]', f"c_attn.weight{wrong}"))
        done = subprocess.run(["boa", "train", spec, "--weights", HERE / "bigcode", "--state", tmp / "no",
                               "--data", HERE / "text.txt", *sets(*ADAMW)], capture_output=True, text=True)
        assert done.returncode == 1 and f"transformer.h.0.attn.c_attn.weight: {where}" in done.stderr, done.stderr


def columns(tmp):
    folder, spec = unknown("gpt2", tmp), tmp / "gpt2.boa"
    boa("import", HERE / "gpt2", "-o", spec, "--context", 16)
    shapes = {"w": 3 * ["[width, width]"], "b": 3 * ["[width]"]}
    parts = {"w": ["[:, :]", "[:, 24:]", "[0:, 48:]"], "b": ["[:]", "[24:]", "[48:]"]}
    joined = "\n".join(["    let n = layer_norm(x, ln1_w, ln1_b, eps = 1e-05)",
                        *(f"    let {p} = linear(n, {p}_w, {p}_b)" for p in "qkv")])
    check("gpt2", folder, apart(spec.read_text(), "gpt2", shapes, joined, parts), tmp, "columns")


def once(tmp):
    """The last of two layers is a layer of its own."""
    text = (HERE / "hunyuan.boa").read_text().replace("depth = 2", "depth = 1")
    begin_at, end = text.index("  layer block"), text.index("  stage head")
    layer = text[begin_at:end]
    last = layer.replace("layer block", "layer last").replace("repeat depth", "repeat 1").replace("layers.*", "layers.1")
    text = text[:begin_at] + layer + last + text[end:]
    check("hunyuan", HERE / "hunyuan", text, tmp, "once")


def fresh(tmp):
    spec = tmp / "fresh.boa"
    text = (HERE / "hunyuan.boa").read_text().replace(
        "    return cross_entropy(linear(rms_norm(x, n), transpose(embed.table)), targets)",
        "    param more: [width] = ones\n    return cross_entropy(linear(rms_norm(x, n) * more, transpose(embed.table)), targets)")
    spec.write_text(text)
    said = begin(spec, HERE / "hunyuan", tmp / "fresh.begin")
    note = [line for line in said.splitlines() if "initial values" in line]
    assert len(note) == 1 and note[0].endswith("hunyuan`, with initial values: head.more"), said
    # Ones change no loss; what has no name cannot go out.
    wanted = json.loads((HERE / "losses.json").read_text())["hunyuan"]["plain"][0]
    assert f"step 1: loss {wanted:.4f}" in said, (wanted, said)
    done = subprocess.run(["boa", "export", spec, "--state", tmp / "fresh.begin", "--config", HERE / "hunyuan", "-o",
                           tmp / "fresh.out"], capture_output=True, text=True)
    assert "parameter head.more has no name in the folder" in done.stderr, done.stderr
    print("fresh: its initial values, and a note")


def main():
    for way in rows, columns, once, fresh:
        way(Path(sys.argv[1]))


main()
