"""Which parts a change can reach: what `tools/check --since COMMIT` runs."""
import subprocess

from report import ROOT

# Parts: documents, compiler (its passes and language), runtime (with the sanitizers), driver (both, as a user meets
# them). The first prefix or suffix that fits says which; what none fits reaches all.
ALL = {"documents", "compiler", "runtime", "driver"}
BY_SUFFIX = {".md": {"documents"}, ".svg": {"documents"}}
BY_PREFIX = [
    (("runtime/abi/", "tools/check", "tools/setup", "test/check/", ".ci/", "cmake"), ALL),
    (("test/bench/", "test/plan/", "test/gpu/RESULTS", "LICENSE", ".gitignore", "tools/demo"), {"documents"}),
    (("dialect/", "passes/", "frontend/", "test/passes/", "test/frontend/", "test/gradients/", "test/fake_cuda/"),
     {"documents", "compiler", "driver"}),
    (("runtime/", "test/runtime/", "test/simulation/"), {"documents", "runtime", "driver"}),
    (("tools/", "test/driver/", "test/e2e/", "examples/"), {"documents", "driver"}),
]


def parts_of(path):
    if path.rsplit("/", 1)[-1] in ("CMakeLists.txt", "CMakePresets.json"):
        return ALL
    for suffix, parts in BY_SUFFIX.items():
        if path.endswith(suffix):
            return parts
    for prefixes, parts in BY_PREFIX:
        if path.startswith(prefixes):
            return parts
    return ALL


def changed(commit):
    """Paths that differ from the commit, those that git does not know among them."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(set(git("diff", "--name-only", commit) + git("ls-files", "--others", "--exclude-standard")))


def reached(commit):
    paths = changed(commit)
    return set().union({"documents"}, *map(parts_of, paths)) if paths else set()
