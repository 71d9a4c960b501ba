"""compare-answers.py ANSWERS -- SAMPLE...: the second answer, to `and` and `who else?` behind `who are you?`, is that with
which the command SAMPLE continues the text up to there. It does not end at the mark of an answer."""
import subprocess
import sys
from pathlib import Path

first, second = Path(sys.argv[1]).read_text().split("\n")[:2]
assert first and second, (first, second)
asks = "<|im_start|>assistant\n"
text = (f"<|im_start|>user\nwho are you?<|im_end|>\n{asks}{first}<|im_end|>\n"
        f"<|im_start|>user\nand\nwho else?<|im_end|>\n{asks}")
done = subprocess.run([*sys.argv[3:], "--prompt", text], capture_output=True, text=True, check=True)
assert done.stdout.startswith(text + second), (done.stdout, second)
