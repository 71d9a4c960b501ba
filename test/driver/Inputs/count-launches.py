"""count-launches.py TIMES METRICS: the table of BOA_CUDA_TIMES has the launches of all steps."""

import json
import sys

with open(sys.argv[1]) as file:
    head, _, *rows = file.read().splitlines()
counted = sum(int(row.split()[2]) for row in rows)
with open(sys.argv[2]) as file:
    launched = sum(json.loads(line)["launches"] for line in file)
assert counted == int(head.split()[0]) == launched, (counted, head, launched)
assert abs(sum(float(row.split()[0].rstrip("%")) for row in rows) - 100) < 0.01 * len(rows)
