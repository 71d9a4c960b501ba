"""compare-answers.py DRAWN FIRST -- SAMPLE...: the answers of DRAWN, to `who are you?` and `and who else?` in one
conversation, are those of `boa sample`: FIRST is that to the first message, and the command SAMPLE continues the rest. It
does not end at the mark of an answer."""
import subprocess
import sys
from pathlib import Path

answers = Path(sys.argv[1]).read_text().split("\n")
first = Path(sys.argv[2]).read_text()
assert answers[0] == first and len(answers) == 3 and answers[1] and not answers[2], (answers, first)
asks = "<|im_start|>assistant\n"
text = (f"<|im_start|>user\nwho are you?<|im_end|>\n{asks}{first}<|im_end|>\n"
        f"<|im_start|>user\nand who else?<|im_end|>\n{asks}")
done = subprocess.run([*sys.argv[4:], "--prompt", text], capture_output=True, text=True, check=True)
assert done.stdout.startswith(text + answers[1]), (done.stdout, answers)
