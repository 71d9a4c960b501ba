"""flags.py TMP: imports models of this folder with keys that their own config.json does not have. The folder has the tensors
that transformers then has. Prints what the specs say.

`boa` is found by PATH.
"""
import re
import sys
from pathlib import Path

from check import HERE, boa
from hostile import add, copy, edit, set_keys

ATTENTION = [f"self_attn.{name}_proj" for name in "qkvo"]
GATED = [f"mlp.{name}_proj" for name in ("gate", "up", "down")]
# The keys, and the modules of a layer whose biases come or go with them.
CASES = {
    "olmo2": ({"attention_bias": True}, ATTENTION),
    "granite": ({"attention_bias": True, "mlp_bias": True}, ATTENTION + GATED),
    "seed_oss": ({"attention_out_bias": True, "mlp_bias": True}, ATTENTION[3:] + GATED),
    "starcoder2": ({"use_bias": False}, ATTENTION + ["mlp.c_fc", "mlp.c_proj"]),
    "falcon": ({"bias": True}, ["self_attention.query_key_value", "self_attention.dense", "mlp.dense_h_to_4h",
                                "mlp.dense_4h_to_h"]),
    "phi3": ({"sliding_window": 8}, []),
}


def change_biases(modules):
    def change(header, data):
        for module in modules:
            for name in [name for name in header if name.endswith(f".{module}.weight")]:
                bias = name.replace(".weight", ".bias")
                if bias in header:
                    del header[bias]
                else:
                    rows = header[name]["shape"][0]
                    data = add(header, data, bias, "F32", [rows], bytes(4 * rows))
        return data
    return change


def main():
    tmp = Path(sys.argv[1])
    for model, (keys, modules) in CASES.items():
        folder, spec = copy(model, model), tmp / f"{model}.boa"
        set_keys(folder, **keys)
        edit(folder, change_biases(modules))
        boa("import", folder, "-o", spec, "--context", 16)
        text = spec.read_text()
        biases = re.findall(r"transpose\((\w+)_w\),\s+\1_b\)", text)
        window = re.search(r"window = \d+", text)
        print(f"{model}: biases {' '.join(biases) or 'none'},", window[0] if window else "no window")


main()
