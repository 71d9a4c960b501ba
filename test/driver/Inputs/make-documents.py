"""Writes 120 documents of 8 tokens, with the one that ends them, of two kinds in turn.

make-documents.py FOLDER
"""

import sys
from pathlib import Path

for i in range(120):
    letters = "abcd" if i % 2 else "defg"
    Path(sys.argv[1], f"{i:03}.txt").write_text(" ".join(letters[j % 4] for j in range(6)))
