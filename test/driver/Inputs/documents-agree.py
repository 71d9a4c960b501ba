"""Of packed documents the loss is that of documents by themselves, and not that across documents.

documents-agree.py PACKED APART ACROSS
"""

import re
import sys
from pathlib import Path

texts = [Path(name).read_text() for name in sys.argv[1:]]
packed, apart, across = [float(re.search(r"loss ([\d.]+)", text)[1]) for text in texts]
assert "over 840 targets in 120 sequences" in texts[1], texts
assert abs(packed - apart) < 2e-6, texts
assert abs(packed - across) > 1e-2, texts
