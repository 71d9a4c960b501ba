"""compare-losses.py EXPECTED FOUND TOLERANCE [relative]: the losses of two files of metrics, step by step."""
import json
import sys

expected, found = ([json.loads(line) for line in open(name)] for name in sys.argv[1:3])
expected, found = ([step["loss"] for step in steps if "loss" in step] for steps in (expected, found))
assert expected and len(expected) == len(found), (expected, found)
relative = sys.argv[4:] == ["relative"]
differences = [abs(a - b) / (abs(a) if relative else 1) for a, b in zip(expected, found)]
for step, (a, b, difference) in enumerate(zip(expected, found, differences), 1):
    assert difference <= float(sys.argv[3]), f"step {step}: expected {a} but found {b}"
print(f"{len(expected)} losses, at most {max(differences):.2g} apart")
