"""Checks the structure of the tree: no include goes up or round, no source is too long, and the
runtime has no locks that the compiler does not check.

check-structure.py ROOT
"""

import re
import sys
from pathlib import Path

# From the bottom up. A file belongs to the longest prefix that it has, and includes files of its
# own prefix and of those before it.
LAYERS = """
runtime/abi/
runtime/support/
runtime/io/
runtime/formats/
runtime/template/
runtime/tokenizer/
runtime/data/
runtime/state/
runtime/kernels/
runtime/device/
runtime/device/cuda/
runtime/engine/
runtime/probe/
runtime/view/
runtime/weights/
runtime/generate/
runtime/trainer/
dialect/
frontend/
frontend/IRGen
passes/
passes/analysis/
passes/model/
passes/schedule/
passes/storage/
passes/kernels/
passes/target/
passes/Pipeline
tools/
test/
""".split()

# The compiler includes of the runtime what both share. The tools include all of it.
SHARED = ("runtime/abi/", "runtime/support/")
COMPILER = ("dialect/", "frontend/", "passes/")

# Neighbours that do without one another, in this direction.
APART = (("runtime/weights/", "runtime/view/"), ("runtime/generate/", "runtime/view/"))

MOST_LINES = 500
# Tables, which have no structure to split.
TABLES = {"test/passes/verify-storage-refusals.mlir"}

# The runtime's locks are those of this file, which say what they guard.
LOCKS = "runtime/support/mutex.h"
PLAIN_LOCK = re.compile(r"std::(?:\w*_)?(?:mutex|lock_guard|unique_lock|scoped_lock|shared_lock|"
                        r"condition_variable\w*)\b|#\s*include <(?:shared_)?mutex>|"
                        r"#\s*include <condition_variable>")

# A comment of the compiler's is understood alone. With these words no sentence begins.
SENTENCES = ("dialect/", "passes/")
FRAGMENT = re.compile(r"^(?!\s*///).*\n\s*/// (Of|And|As|By|Null|None|False|True|Where|Likewise)\b", re.M)

INCLUDE = re.compile(r'^\s*#\s*include "((?:dialect|frontend|passes|runtime|test|tools)/[^"]+)"', re.M)


def layer(path):
    return max((i for i, prefix in enumerate(LAYERS) if path.startswith(prefix)),
               key=lambda i: len(LAYERS[i]), default=None)


def main(root):
    names = [str(path.relative_to(root))
             for folder in ("dialect", "frontend", "passes", "runtime", "test", "tools")
             for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cpp", ".def", ".td")]
    errors = []
    includes = 0
    graph = {}
    for name in names:
        text = (root / name).read_text()
        lines = text.count("\n")
        if lines > MOST_LINES and name not in TABLES:
            errors.append(f"{name}: {lines} lines, at most {MOST_LINES} are allowed")
        if name.startswith("runtime/") and name != LOCKS:
            for plain in PLAIN_LOCK.finditer(text):
                line = text.count("\n", 0, plain.start()) + 1
                errors.append(f"{name}:{line}: {plain.group()}, where {LOCKS} has locks that the "
                              "compiler checks")
        if name.startswith(SENTENCES):
            for fragment in FRAGMENT.finditer(text):
                line = text.count("\n", 0, fragment.start(1)) + 1
                errors.append(f"{name}:{line}: a comment that begins with {fragment[1]} is no sentence")
        graph[name] = INCLUDE.findall(text)
        for other in graph[name]:
            includes += 1
            # Of generated headers the folder counts.
            if layer(other) is None or layer(name) is None:
                errors.append(f"{name}: includes {other}, which belongs to no layer")
            elif layer(other) > layer(name):
                errors.append(f"{name}: includes {other}, which is above it")
            elif name.startswith(COMPILER) and other.startswith("runtime/") and \
                    not other.startswith(SHARED):
                errors.append(f"{name}: includes {other}, which the compiler does not share")
            elif any(name.startswith(a) and other.startswith(b) for a, b in APART):
                errors.append(f"{name}: includes {other}, of a folder that its own does without")
    errors += find_circles(graph)
    print(*errors, sep="\n")
    print(f"{len(names)} files, {includes} includes: {len(errors)} errors")
    return 1 if errors else 0


def find_circles(graph):
    errors, done, path = [], set(), []

    def visit(name):
        if name in path:
            errors.append("a circle: " + " -> ".join(path[path.index(name):] + [name]))
            return
        if name in done or name not in graph:
            return
        path.append(name)
        for other in graph[name]:
            visit(other)
        path.pop()
        done.add(name)

    for name in graph:
        visit(name)
    return errors


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
