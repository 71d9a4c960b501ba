"""How long continuous integration takes to name a fault.

    faults.py [NAME...]

Puts faults into a clone of HEAD, runs .ci/run there, and prints after how many minutes the output names each. Faults of
one group do not hide each other and share a run. A run ends when all of its faults are named. It needs up to an hour.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# name: group, file, text, replacement, what the output has when CI names it.
FAULTS = {
    "does not compile": ("build", "runtime/support/units.cpp", "namespace boa {", "namespace boa { int x = ;",
                         r"units\.cpp:\d+:\d+: error"),
    "a lock is missing": ("lock", "runtime/device/updates.cpp", "\n  MutexLock lock(mutex);\n", "\n",
                          r"error: .*requires holding mutex"),
    "format": ("quick", "runtime/io/ring.cpp", "namespace boa {\n", "namespace  boa  {\n", r"FAIL .*ring\.cpp"),
    "stale document": ("quick", "passes/PASSES.md", "### ", "### The ", r"FAIL lit: driver/reference"),
    "a pass does nothing": ("quick", "passes/storage/ElideOffloads.cpp", "void runOnOperation() override {",
                            "void runOnOperation() override {\n    return;", r"FAIL lit: passes/elide-offloads"),
    "another diagnostic": ("quick", "frontend/Parser.cpp", "expected ", "wanted ", r"FAIL unit tests: frontend"),
    "a wrong bit": ("quick", "runtime/tokenizer/bpe.cpp", "ids[i] = found ? found->id : 0;",
                    "ids[i] = found ? found->id ^ 1 : 0;", r"FAIL unit tests: tokenizer"),
    "a hang": ("hang", "runtime/data/windows.cpp", "namespace boa {",
               "#include <unistd.h>\nnamespace boa {\nstatic int hang = [] { if (getenv(\"GTEST_OUTPUT\")) pause(); return 0; }();",
               r"FAIL unit tests: \S+ Timeout"),
    "a leak": ("rest", "runtime/tokenizer/open.cpp", "namespace boa {",
               "namespace boa {\nint *volatile leaked = new int[4];\nstatic int leak = (leaked = nullptr, 0);",
               r"FAIL AddressSanitizer: \S+"),
    "a race": ("rest", "runtime/support/thread_pool.cpp", "void Pool::RunPart(int64_t part) {\n",
               "int raced = 0;\nvoid Pool::RunPart(int64_t part) {\n  ++raced;\n", r"FAIL ThreadSanitizer: \S+"),
}


def run(group, names):
    named = {}
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "project"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        for name in names:
            _, file, text, replacement, _ = FAULTS[name]
            source = (clone / file).read_text()
            if text not in source:
                sys.exit(f"{name}: {file} has no {text!r}")
            (clone / file).write_text(source.replace(text, replacement, 1))
        began = time.monotonic()
        process = subprocess.Popen(["bash", ".ci/run"], cwd=clone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        for line in process.stdout:
            for name in names:
                if name not in named and re.search(FAULTS[name][4], line):
                    named[name] = (time.monotonic() - began) / 60
                    print(f"{name}: named after {named[name]:.1f} minutes: {line.strip()[:120]}", flush=True)
            if len(named) == len(names):
                os.killpg(process.pid, signal.SIGTERM)
                break
        process.wait()
        shutil.rmtree(clone, ignore_errors=True)
    for name in names:
        if name not in named:
            print(f"{name}: NOT NAMED", flush=True)


def main():
    chosen = sys.argv[1:] or list(FAULTS)
    groups = {}
    for name in chosen:
        groups.setdefault(FAULTS[name][0], []).append(name)
    for group, names in groups.items():
        run(group, names)


main()
