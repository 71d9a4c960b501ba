"""Trains on the same conversations in several forms of records, and compares the losses.

train-forms.py SPEC TOKENIZER FOLDER
"""
import json
import subprocess
import sys
from pathlib import Path

from record_forms import FORMS

spec, tokenizer, folder = sys.argv[1:]
folder = Path(folder)
talks = [(f"question {i}\nof {i * i}", f"answer {i % 7}") for i in range(60)]
expected = None
for name, form in FORMS.items():
    file, metrics = folder / f"{name}.jsonl", folder / f"{name}.metrics"
    file.write_text("".join(json.dumps(form(*talk)) + "\n" for talk in talks))
    subprocess.run(["boa", "train", spec, "--state", folder / f"{name}.state", "--tokens", folder / f"{name}.tokens",
                    "--metrics", metrics, "--quiet", "--steps", "2", "--set",
                    f'train.data=chat("{file}", tokenizer = "{tokenizer}", template = "chatml")'], check=True)
    tokens = [path.read_bytes() for path in sorted((folder / f"{name}.tokens").iterdir())
              if path.suffix in (".bin", ".targets", ".begins")]
    losses = [json.loads(line).get("loss") for line in metrics.read_text().splitlines()]
    found = tokens, [loss for loss in losses if loss is not None]
    assert tokens and found[1], found
    expected = expected or found
    assert found == expected, f"{name}: {found[1]} but {expected[1]}"
print(f"{len(FORMS)} forms have the same {len(expected[0])} files of tokens and {len(expected[1])} losses")
