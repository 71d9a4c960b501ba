"""Checks what does not follow from the table of settings: `boa plan` prints each setting of a plan, and the descriptors
that the fuzzer begins with have each member.

check-settings.py ROOT
"""

import json
import re
import sys
from pathlib import Path

BLOCKS = {"model": "Model", "train": "Train", "plan": "Plan", "machine": "Machine"}

# A batch of 0 was a fault where a member is missing, too.
INCOMPLETE = {"batch-of-zero.json"}


def main(root):
    table = (root / "runtime/abi/settings.def").read_text()
    structs = {name: re.findall(r"^BOA_(?!FORM)(\w+)\((\w+), (\w*)", body, re.M)
               for name, body in re.findall(r"^BOA_STRUCT\((\w+)\)\n(.*?)^BOA_END", table, re.M | re.S)}
    errors = []

    printed = "\n".join(re.findall(r'"((?:[^"\\]|\\.)*)"', (root / "tools/plan/PlanTrials.cpp").read_text()))
    settings = re.findall(r'at\("plan\.(?:schedule\.)?(\w+)"\)', table)
    for name in settings:
        if not re.search(rf"\b{name} += ", printed):
            errors.append(f"tools/plan/PlanTrials.cpp: prints no `{name}`")

    def compare(where, found, struct):
        members = {name for _, name, _ in structs[struct]}
        for name in sorted(members ^ found.keys()):
            errors.append(f"{where}: `{name}` is {'missing' if name in members else 'no member'}")
        for kind, name, of in structs[struct]:
            if kind == "SECTION" and of in structs and name in found:
                compare(f"{where}.{name}", found[name], of)

    descriptors = [path for path in sorted((root / "test/fuzz/corpus/program").glob("*.json"))
                   if path.name not in INCOMPLETE]
    version = int(re.search(r"BOA_ABI_VERSION (\d+)", (root / "runtime/abi/abi.h").read_text())[1])
    for path in descriptors:
        program, where = json.loads(path.read_text()), str(path.relative_to(root))
        if program["abi"] != version:
            errors.append(f"{where}: abi: expected {version} but found {program['abi']}")
        for block, struct in BLOCKS.items():
            compare(f"{where}: {block}", program[block], struct)
    print(*errors, sep="\n")
    print(f"{len(settings)} settings of plans, {len(descriptors)} descriptors: {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
