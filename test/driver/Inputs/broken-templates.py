"""What `boa train` says of templates that are wrong.

broken-templates.py SPEC

Runs in the folder of tokenizer.json.
"""
import os
import subprocess
import sys
from pathlib import Path

LOOP = "{% for m in messages %}<|im_start|>{{ m.role }}\n%s<|im_end|>\n{% endfor %}"
TEMPLATES = {
    "open": "{% for m in messages %}\n{{ m.content }}\n",
    "word": "{{ messages | tojsn }}",
    "statement": "{% include 'other' %}",
    "name": LOOP.replace("%s", "{{ n.content }}"),
    "attribute": LOOP.replace("%s", "{{ m.content.text.first }}"),
    "types": LOOP.replace("%s", "{{ m.content + loop.index }}"),
    "refuses": LOOP.replace("%s", "{{ raise_exception('no ' + m.role + ' here') }}"),
    "endless": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "gigabyte": "{{ 'a' * 1000000000 }}",
    "no end": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    "parting": LOOP.replace("%s", "{{ m.content }}") + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>"
               "{% endif %}",
}
Path("talks.jsonl").write_text('{"messages": [{"role": "user", "content": "a"}, '
                               '{"role": "assistant", "content": "b"}]}\n' * 40)
for name, text in TEMPLATES.items():
    Path("t.jinja").write_text(text)
    run = subprocess.run(["boa", "train", sys.argv[1], "--state", "none", "--steps", "1", "--set",
                          'train.data=chat("talks.jsonl", tokenizer = "tokenizer.json", template = "t.jinja")'],
                         capture_output=True, text=True, timeout=60)
    said = run.stderr.strip().replace(os.getcwd() + "/", "")
    print(f"{name}: {said}" if run.returncode == 1 else f"{name}: exit status {run.returncode}",
          flush=True)
