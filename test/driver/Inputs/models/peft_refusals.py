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


def folder(tmp, config=(), tensors=None, of=FOLDER):
    path = tmp / "edited"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(of, path)
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

    def train(path, state, *more, weights=("--weights", HERE / "llama"), spec=spec):
        return subprocess.run(["boa", "train", spec, "--data", HERE / "text.txt", "--set", "train.batch=1", "--steps", "1",
                               "--quiet", "--from", path, "--state", state, *weights, *more],
                              capture_output=True, text=True)

    def said(path, *more, **others):
        done = train(path, tmp / "refused", *more, **others)
        assert done.returncode == 1, (path, done)
        assert not (tmp / "refused").exists()
        return done.stderr

    def adapters(path, **others):
        """Those of a training that goes on with a folder."""
        shutil.rmtree(tmp / "taken", ignore_errors=True)
        done = train(path, tmp / "taken", **others)
        assert done.returncode == 0, (path, done)
        return subprocess.run(["boa", "state", tmp / "taken"], capture_output=True, text=True, check=True).stdout

    def expect(wanted, found):
        assert wanted in found, (wanted, found)

    for key, value, why in [
            ("use_dora", True, "Boa has no DoRA"),
            ("peft_type", "LOHA", "`LOHA`: of PEFT's methods Boa has LORA alone"),
            ("bias", "all", "`all` trains the biases of the model, too, and Boa leaves them as they are: expected none"),
            ("r", None, "expected a whole number from 1 to 65536 but found none"),
            ("init_lora_weights", "pissa", "`pissa` changes the weights of the model, too: expected an adapter that PEFT "
             "converted to plain LoRA"),
            ("rank_pattern", {"q_proj": 8}, "Boa gives all adapters one rank"),
            ("alpha_pattern", {"q_proj": 8, "v_proj": 16}, "Boa gives all adapters one alpha"),
            ("alpha_pattern", [8], "expected an object"),
            ("use_later", True, "Boa does not know it, and it may change the computation; remove it from the file if it "
             "does not")]:
        expect(f"/adapter_config.json`: key `{key}`: {why}", said(folder(tmp, {key: value})))
    # All faults come at once.
    others = {"use_qalora": (True, "Boa has no QALoRA"), "use_bdlora": ({"nblocks": 2}, "Boa has no BD-LoRA"),
              "kasa_config": ({"beta": 1}, "Boa has no KaSA"), "monteclora_config": ({"n": 2}, "Boa has no MonteCLoRA"),
              "velora_config": ({"rank": 1}, "Boa has no VeLoRA"),
              "arrow_config": ({"top_k": 3}, "Boa has no Arrow, which routes between adapters"),
              "alora_invocation_tokens": ([7], "Boa has no aLoRA, whose adapters act behind these tokens alone"),
              "lora_bias": (True, "Boa's adapters have no bias"),
              "target_parameters": (["mlp.w"], "Boa's adapters are of the weights of linear modules alone"),
              "trainable_token_indices": ([7], "Boa trains no single rows of an embedding"),
              "layer_replication": ([[0, 2]], "the model of the adapter has these layers several times, and Boa's once"),
              "megatron_config": ({"a": 1}, "the modules of Megatron are others than those of transformers")}
    found = said(folder(tmp, {key: value for key, (value, _) in others.items()}))
    expect(f"/adapter_config.json`: {len(others)} faults", found)
    for key, (_, why) in others.items():
        expect(f"  key `{key}`: {why}\n", found)
    # What says nothing new is taken.
    plain = {"rank_pattern": {"q_proj": 4}, "alpha_pattern": {"v_proj": 8.0}, "loftq_config": {"loftq_bits": 4},
             "megatron_core": "megatron.core", "layers_to_transform": [0, 1], "init_lora_weights": "gaussian",
             **{key: ([] if isinstance(value, list) else False) for key, (value, _) in others.items()}}
    taken = adapters(folder(tmp, plain))
    expect('lora(rank = 4, alpha = 8, targets = ("block.q_w", "block.v_w"))', taken)

    weights = "/adapter_model.safetensors`: tensor `"
    expect(weights + "base_model.model.model.norm.weight`: it is no part of LoRA, and `modules_to_save` does not name its "
           "module", said(folder(tmp, tensors=lambda all: renamed(
               all, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
               "base_model.model.model.norm.weight"))))
    expect(weights + "layers.0.self_attn.q_proj.lora_A.weight`: expected a name that begins with base_model.model.",
           said(folder(tmp, tensors=lambda all: renamed(
               all, "base_model.model.model.layers.0.self_attn.q_proj.lora_A", "layers.0.self_attn.q_proj.lora_A"))))
    for bad in '"', "\\", "\n":
        expect("_proj.lora_A.weight`: expected a name without quotes, backslashes and control characters",
               said(folder(tmp, tensors=lambda all: renamed(all, "q_proj", f"q{bad}_proj"))))

    # Each whole module has its tensors.
    saved = HERE / "lora" / "llama.saved"
    expect("/adapter_config.json`: key `modules_to_save`: `score` was trained, but adapter_model.safetensors has no tensor of "
           "it; remove the name if the model has no such module",
           said(folder(tmp, {"modules_to_save": ["lm_head", "norm", "score"]}, of=saved)))
    expect("key `modules_to_save`: `lm_head` was trained, but", said(folder(tmp, {"modules_to_save": ["lm_head"]})))
    # A head that is as the embedding is one of its own where the model has one.
    names = ["embed_tokens", "lm_head"]
    alike = dict(config={"modules_to_save": names, "ensure_weight_tying": False}, of=HERE / "lora" / "llama-tied.saved")
    expect('modules_to_save = ("embed.table", "head.w")', adapters(folder(tmp, **alike)))
    tied = dict(spec=tmp / "tied.boa", weights=("--weights", HERE / "llama-tied"))
    subprocess.run(["boa", "import", HERE / "llama-tied", "-o", tied["spec"], "--context", "16"], check=True,
                   capture_output=True)
    expect('modules_to_save = "embed.table")', adapters(folder(tmp, **alike), **tied))

    file = folder(tmp, **alike) / "adapter_model.safetensors"
    data = bytearray(file.read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    data[8 + length + json.loads(data[8:8 + length])["base_model.model.lm_head.weight"]["data_offsets"][0]] ^= 1
    file.write_bytes(data)
    expect("/adapter_model.safetensors`: model.embed_tokens: PEFT trained it apart from `lm_head`, and in this model they are "
           "one matrix", said(file.parent, **tied))

    # An adapter of other layers, of another rank, and of a module that the model has not.
    expect("layers.1.self_attn.q_proj.lora_A.weight: expected [4, 24] but found no such tensor",
           said(folder(tmp, tensors=lambda all: renamed(all, "layers.1.self_attn.q_proj", "layers.7.self_attn.q_proj"))))
    expect("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight: expected [2, 24] but found [4, 24]",
           said(folder(tmp, {"r": 2})))
    expect("edited` has adapters of another model: this one has no module `model.layers.*.self_attn.k_norm`\n",
           said(folder(tmp, tensors=lambda all: renamed(all, "q_proj", "k_norm"))))
    expect("lora/gpt2` has adapters of another model: this one has no module `transformer.h.*.attn.c_attn`, "
           "`transformer.h.*.attn.c_proj`\n", said(HERE / "lora" / "gpt2"))
    # The spec may say the same, and no other.
    expect("expected the adapters that `", said(FOLDER, "--set", 'train.adapters=lora(8, 8, "q_proj")'))
    expect("--from adapter: the adapters are of `org/model`, and no folder has this name: --weights MODEL names its folder",
           said(folder(tmp, {"base_model_name_or_path": "org/model"}), weights=()).replace(str(tmp / "edited"), "adapter"))
    (tmp / "edited" / "adapter_model.safetensors").unlink()
    expect("has no adapter_model.safetensors: PEFT writes it with safe_serialization = True", said(tmp / "edited"))
    print("all refused")


main()
