"""loss-below-half.py ONE OTHER: of two files of metrics, the last loss of the first is below half of the other's."""
import json
import sys

one, other = ([json.loads(line) for line in open(name)] for name in sys.argv[1:3])
one, other = ([step["loss"] for step in steps if "loss" in step][-1] for steps in (one, other))
assert one < other / 2, f"{one} is not below half of {other}"
