"""Bytes moved, by link and role, and peaks of memory, in a file of metrics."""
import json
import sys

total = {}
with open(sys.argv[1]) as file:
    for line in file:
        step = json.loads(line)
        for link in ("read", "written"):
            for tier, roles in step[link].items():
                for role, count in roles.items():
                    key = f"{link} {tier} {role}"
                    total[key] = total.get(key, 0) + count
        for peak in ("peak_device_bytes", "peak_host_bytes"):
            total[peak] = max(total.get(peak, 0), step[peak])
for key in sorted(total):
    if total[key]:
        print(key, total[key])
