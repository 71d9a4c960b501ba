"""compare-losses.py EXPECTED FOUND TOLERANCE: the losses of two files of metrics, step by step."""
import json
import sys

expected, found = ([json.loads(line) for line in open(name)] for name in sys.argv[1:3])
expected, found = ([step["loss"] for step in steps if "loss" in step] for steps in (expected, found))
assert expected and len(expected) == len(found), (expected, found)
for step, (a, b) in enumerate(zip(expected, found), 1):
    assert abs(a - b) <= float(sys.argv[3]), f"step {step}: expected {a} but found {b}"
