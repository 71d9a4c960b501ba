"""workspace.py KERNEL...: what each of these needs, of a program's LLVM IR on standard input."""
import json
import re
import sys

text = re.search(r'@boa_program = .*? c"(.*?)"', sys.stdin.read()).group(1)
text = re.sub(r"\\([0-9A-F]{2})", lambda code: chr(int(code.group(1), 16)), text).rstrip("\0")
kernels = {kernel["name"]: kernel["workspace"] for kernel in json.loads(text)["kernels"]}
for name in sys.argv[1:]:
    print(f"{name} {kernels[name] / 2**20:.2f} MiB")
