"""compare-launches.py SINGLY AS_GRAPHS SHARE: of two files of metrics the second asked for the same launches in each
step, and made at most this share of the calls, counted over the last half of the steps."""
import json
import sys

singly, graphs = ([json.loads(line) for line in open(name)] for name in sys.argv[1:3])
assert singly and len(singly) == len(graphs), (singly, graphs)
for a, b in zip(singly, graphs):
    assert a["launches"] == b["launches"] == a["launch_calls"] > 0, (a, b)
half = len(graphs) // 2
launches, calls = (sum(step[key] for step in graphs[half:]) for key in ("launches", "launch_calls"))
print(f"{launches} launches in {calls} calls")
assert calls <= float(sys.argv[3]) * launches, (launches, calls)
