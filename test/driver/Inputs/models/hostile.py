"""hostile.py TMP: imports folders of which each has one fault, and prints what Boa says."""
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def copy(name, model):
    folder = Path(sys.argv[1]) / name
    shutil.copytree(HERE / model, folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    return folder


def try_import(name, folder, *more):
    spec, state = folder.parent / (folder.name + ".boa"), folder.parent / (folder.name + ".state")
    done = subprocess.run(["boa", "import", folder, "-o", spec, "--state", state, *more],
                          capture_output=True, text=True)
    assert done.returncode in (0, 1), done
    left = [path for path in (spec, state, spec.with_suffix(".hf")) if path.exists()]
    assert done.returncode == 0 or not left, (name, left)
    print(f"{name}:", "imported" if done.returncode == 0
          else " ".join(done.stderr.replace("error: ", "", 1).split()))


def set_keys(folder, **keys):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def edit(folder, change):
    """`change` takes the header and the bytes of the tensors, and returns the latter."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    data = change(header, bytearray(data[8 + length:]))
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def add(header, data, name, dtype, shape, values):
    header[name] = {"dtype": dtype, "shape": shape,
                    "data_offsets": [len(data), len(data) + len(values)]}
    return data + values


def main():
    Path(sys.argv[1]).mkdir()
    folder = copy("pickle", "qwen2")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    try_import("pickle", folder)
    folder = copy("code", "qwen2")
    set_keys(folder, auto_map={"AutoModel": "code.Model"})
    try_import("code", folder)
    folder = copy("outside", "llama")
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace("model-00001-of-00004", "../model"))
    try_import("outside", folder)
    folder = copy("link", "qwen2")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(HERE / "qwen2" / "model.safetensors")
    try_import("link", folder)
    folder = copy("overflow", "qwen2")
    path = folder / "model.safetensors"
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])
    try_import("overflow", folder)
    for name, keys in [("architecture", {"model_type": "gemma3"}), ("key", {"logits_scaling": 8.0}),
                       ("rope", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}})]:
        folder = copy(name, "qwen2")
        set_keys(folder, **keys)
        try_import(name, folder)

    def missing(header, data):
        del header["model.layers.1.mlp.up_proj.weight"]
        return data

    def more(header, data):
        return add(header, data, "model.layers.0.extra.weight", "F32", [2], bytes(8))

    def shape(header, data):
        del header["model.norm.weight"]
        return add(header, data, "model.norm.weight", "F32", [12], bytes(48))

    def dtype(header, data):
        del header["model.norm.weight"]
        return add(header, data, "model.norm.weight", "I64", [24], bytes(192))

    def nan(header, data):
        begin = header["model.norm.weight"]["data_offsets"][0]
        data[begin + 12:begin + 16] = struct.pack("<f", float("nan"))
        return data

    for name, change in [("missing", missing), ("more", more), ("shape", shape), ("type", dtype),
                         ("nan", nan)]:
        folder = copy(name, "qwen2")
        edit(folder, change)
        try_import(name, folder)
    try_import("context", copy("context", "qwen2"), "--context", "65")
    folder = copy("window", "qwen2")
    set_keys(folder, sliding_window=32, use_sliding_window=True,
             layer_types=["full_attention", "sliding_attention"])
    try_import("window", folder, "--context", "33")

    def buffers(header, data):
        begin, end = header["transformer.wte.weight"]["data_offsets"]
        data = add(header, data, "lm_head.weight", "F32", [128, 24], data[begin:end])
        data = add(header, data, "transformer.h.0.attn.bias", "F32", [1, 1, 32, 32], bytes(4096))
        return add(header, data, "transformer.h.0.attn.masked_bias", "F32", [], bytes(4))

    folder = copy("buffers", "gpt2")
    edit(folder, buffers)
    try_import("buffers and a tied head", folder)

    # The hub's cache has links to blobs of the same model.
    plain = copy("models--tiny--gpt2/snapshots/abc", "gpt2")
    blobs = plain.parent.parent / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(plain.iterdir())):
        path.rename(blobs / f"{number:040x}")
        path.symlink_to(f"../../blobs/{number:040x}")
    try_import("cache", plain)


if __name__ == "__main__":
    main()
