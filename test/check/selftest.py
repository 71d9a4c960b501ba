"""What test/check does of tests that fail, on a folder of ctest made here; `driver/check.test` reads what it prints.

    selftest.py FOLDER
"""
import json
import os
import sys
from pathlib import Path

import reach
import report
import suites

folder = Path(sys.argv[1])
results = folder / "results"
results.mkdir(parents=True)
report.LOGS = suites.LOGS = folder / "logs"
report.LOGS.mkdir()

# Stands for a googletest: fails the first time, or always; with a sanitizer's finding, or without; by a crash.
PROGRAM = """#!/bin/sh
mark={folder}/{name}.ran
case "{kind}" in crash) echo "Segmentation fault"; exit 139;; esac
if test -e $mark && test "{kind}" != always; then exit 0; fi
touch $mark
cat > {results}/{name}.json <<'JSON'
{json}
JSON
echo "[  FAILED  ] Suite.Case (0 ms)"
test "{kind}" = race && echo "WARNING: ThreadSanitizer: data race"
exit 1
"""


def add(name, kind, **properties):
    case = {"name": "Case", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "wrong"}], **properties}
    other = {"name": "Other", "status": "RUN", "result": "COMPLETED"}
    text = json.dumps({"testsuites": [{"name": "Suite", "testsuite": [case, other]}]})
    path = folder / name
    path.write_text(PROGRAM.format(folder=folder, results=results, name=name, kind=kind, json=text))
    path.chmod(0o755)
    with open(folder / "CTestTestfile.cmake", "a") as file:
        file.write(f'add_test({name} "{path}")\n')


add("timed", "once", depends_on_time="ten seconds")
add("untimed", "once")
add("slow", "always", depends_on_time="ten seconds")
add("raced", "race", depends_on_time="ten seconds")
add("crashed", "crash")

suite = report.Report()
suite.stage("unit tests")
suites.unit_tests(suite, str(folder), "unit tests")
suite.end_stage()
print("flaky:", *suite.flaky)
print("failed:", *sorted(what.split()[2] for what, _ in suite.failures))

for path in ("README.md", "passes/storage/HoistPrefetch.cpp", "runtime/io/uring.cpp", "tools/Help.cpp",
             "runtime/abi/abi.h", "test/CMakeLists.txt", "tools/check", "test/check/check.py", "something.new"):
    print(f"{path}:", *sorted(reach.parts_of(path)))
