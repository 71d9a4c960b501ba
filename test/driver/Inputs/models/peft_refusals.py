"""peft_refusals.py SPEC TMP: folders of PEFT that a training cannot go on with, or only with a change, and what is said.

`boa` is found by PATH.
"""
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / "lora" / "llama"


def folder(tmp, config=(), tensors=None):
    path = tmp / "edited"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(FOLDER, path)
    keys = json.loads((path / "adapter_config.json").read_text())
    keys.update(config)
    (path / "adapter_config.json").write_text(json.dumps(keys))
    if tensors:
        data = (path / "adapter_model.safetensors").read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.dumps(tensors(json.loads(data[8:8 + length]))).encode()
        (path / "adapter_model.safetensors").write_bytes(
            struct.pack("<Q", len(header)) + header + data[8 + length:])
    return path


def renamed(tensors, old, new):
    return {key.replace(old, new): value for key, value in tensors.items()}


def main():
    spec, tmp = sys.argv[1], Path(sys.argv[2])

    def said(path, *more, weights=("--weights", HERE / "llama")):
        done = subprocess.run(["boa", "train", spec, "--data", HERE / "text.txt", "--set", "train.batch=1", "--steps", "1",
                               "--quiet", "--from", path, "--state", tmp / "refused", *weights, *more],
                              capture_output=True, text=True)
        assert done.returncode == 1, (path, done)
        assert not (tmp / "refused").exists()
        return done.stderr

    def expect(wanted, found):
        assert wanted in found, (wanted, found)

    for key, value, why in [
            ("use_dora", True, "Boa has no DoRA"),
            ("peft_type", "LOHA", "`LOHA`: of PEFT's methods Boa has LORA alone"),
            ("bias", "all", "`all`: expected none"),
            ("r", None, "expected a whole number from 1 to 65536 but found none"),
            ("init_lora_weights", "pissa", "`pissa` changes the weights of the model, too: expected an adapter that PEFT "
             "converted to plain LoRA"),
            ("rank_pattern", {"q_proj": 8}, "Boa does not know it, and it may change the computation; remove it from the "
             "file if it does not"),
            ("layer_replication", [[0, 2]], "Boa does not know it")]:
        expect(f"/adapter_config.json`: key `{key}`: {why}", said(folder(tmp, {key: value})))

    weights = "/adapter_model.safetensors`: tensor `"
    expect(weights + "base_model.model.model.norm.weight`: it is no part of LoRA, and `modules_to_save` does not name its "
           "module", said(folder(tmp, tensors=lambda all: renamed(
               all, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
               "base_model.model.model.norm.weight"))))
    expect(weights + "layers.0.self_attn.q_proj.lora_A.weight`: expected a name that begins with base_model.model.",
           said(folder(tmp, tensors=lambda all: renamed(
               all, "base_model.model.model.layers.0.self_attn.q_proj.lora_A", "layers.0.self_attn.q_proj.lora_A"))))
    # An adapter of other layers, of another rank, and of a module that the model has not.
    expect("layers.1.self_attn.q_proj.lora_A.weight: expected [4, 24] but found no such tensor",
           said(folder(tmp, tensors=lambda all: renamed(all, "layers.1.self_attn.q_proj", "layers.7.self_attn.q_proj"))))
    expect("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight: expected [2, 24] but found [4, 24]",
           said(folder(tmp, {"r": 2})))
    expect('no weight of linear is named "model.layers.*.self_attn.k_norm"',
           said(folder(tmp, tensors=lambda all: renamed(all, "q_proj", "k_norm"))))
    # The spec may say the same, and no other.
    expect("expected the adapters that `", said(FOLDER, "--set", 'train.adapters=lora(8, 8, "q_proj")'))
    expect("--from adapter: the adapters are of `org/model`, and no folder has this name: --weights MODEL names its folder",
           said(folder(tmp, {"base_model_name_or_path": "org/model"}), weights=()).replace(str(tmp / "edited"), "adapter"))
    (tmp / "edited" / "adapter_model.safetensors").unlink()
    expect("has no adapter_model.safetensors: PEFT writes it with safe_serialization = True", said(tmp / "edited"))
    print("all refused")


main()
