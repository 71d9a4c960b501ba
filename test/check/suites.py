"""Runs suites of tests and counts them: ctest, lit, scripts.

A failure is said when it happens. A test that says that it depends on time is run once more, alone, if nothing else
failed it: googletests by RecordProperty("depends_on_time", ...), lit's by a line with DEPENDS-ON-TIME. A sanitizer's
finding ends that.
"""
import collections
import json
import os
import re
import shlex
import subprocess
import threading
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor

from report import LOGS, ROOT, say

CORES = len(os.sched_getaffinity(0))
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehavior|runtime error:")
TELLING = re.compile(r"\[  FAILED  \] \S+ \(|: Failure$|^(FAIL|Expected|  Actual|Which is)|[Ee]rror:|ERROR:|"
                     r"WARNING: ThreadSanitizer|SUMMARY:|Segmentation|terminate called|No tests|Unable to find")
LIT = "/usr/lib/llvm-22/bin/lit"
# A test that hangs is named after so many seconds.
LIMIT = 600


def stream(command, log, on_line, **options):
    """Runs a command, keeps its output in a file, and hands on each line. Its exit status."""
    with open(log, "w") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace", **options)
        for line in process.stdout:
            file.write(line)
            on_line(line.rstrip("\n"))
        return process.wait()


def repeated(command, environment, log):
    """Whether it passes, run alone."""
    with open(log, "a") as file:
        say("     once more, alone: " + shlex.join(command))
        file.write("\n== once more, alone\n")
        file.flush()
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=900,
                              env={**os.environ, **environment}, cwd=ROOT).returncode == 0


# ctest

def declared(build, *selection):
    """The tests that ctest would run: by name their command, environment and labels."""
    said = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *selection], capture_output=True,
                          text=True, check=True).stdout
    tests = {}
    for test in json.loads(said)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        tests[test["name"]] = {"command": test.get("command"),
                               "environment": dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))}
    return tests


def unit_tests(report, build, name, *selection, jobs=CORES):
    """ctest with this selection. A googletest counts by its cases, anything else as one, and so does a program that
    fails without a failed case (a crash). A case that is skipped is none, and may say what the machine lacks."""
    log = LOGS / (name.replace(" ", "-").replace(",", "") + ".log")
    results = ROOT / build / "results"  # by test, where test/CMakeLists.txt has them written
    for old in results.glob("*.json"):
        old.unlink()
    tests = declared(build, *selection)
    outputs = {}
    current, detail = [None], [0]

    def on_line(line):
        ended = re.match(r"\s*\d+/\d+ Test\s+#\d+: (\S+) \.*(\s+Passed|\*\*\*.*)", line)
        if ended:
            current[0] = None if "Passed" in ended.group(2) else ended.group(1)
            if current[0]:
                outputs[current[0]] = []
                report.failure(f"{name}: {ended.group(1)} {ended.group(2).strip('*')}",
                               f"ctest --test-dir {build} -R '^{ended.group(1)}$' --output-on-failure")
        elif current[0]:
            outputs[current[0]].append(line)
            detail[0] = 9 if line.endswith(": Failure") else detail[0] - 1  # what was expected, and found
            if (detail[0] > 0 or TELLING.search(line)) and sum(map(len, outputs[current[0]])) < 20000:
                say("     " + line)
        elif re.match("No tests|Unable to find", line):
            say("     " + line)

    stream(["ctest", "--test-dir", build, *selection, "-j", str(jobs), "--timeout", str(LIMIT), "--output-on-failure",
            "--no-tests=error", "--output-junit", str(log.with_suffix(".xml"))], log, on_line)
    try:
        cases = xml.parse(log.with_suffix(".xml")).getroot().findall("testcase")
    except (OSError, xml.ParseError):
        report.count(0, 1)
        return
    passed = failed = 0
    for case in cases:
        test, bad = case.get("name"), case.get("status") in ("fail", "notrun")
        result = cases_of(results / f"{test}.json")
        if result is None:
            passed, failed = passed + (not bad), failed + bad
            continue
        good, wrong, skipped = result
        report.lacking |= {entry["lacking"] for entry in skipped if "lacking" in entry}
        # A crash or a sanitizer's finding fails a program whose cases pass.
        if bad and not wrong:
            failed += 1
        elif wrong and mended(report, name, test, tests[test], wrong, "\n".join(outputs.get(test, [])), log):
            good, wrong = good + len(wrong), []
        passed, failed = passed + good, failed + len(wrong)
    report.count(passed, failed)
    report.slowest([(case.get("name"), float(case.get("time"))) for case in cases])


def cases_of(file):
    """Of a googletest's result: how many passed, those that failed, those that were skipped. None of anything else."""
    try:
        suites = json.loads(file.read_text())["testsuites"]
    except (OSError, ValueError):
        return None
    cases = [{**case, "case": f"{suite['name']}.{case['name']}"} for suite in suites for case in suite["testsuite"]
             if case["status"] == "RUN"]
    wrong = [case for case in cases if case.get("failures")]
    skipped = [case for case in cases if case["result"] == "SKIPPED"]
    return len(cases) - len(wrong) - len(skipped), wrong, skipped


def mended(report, suite, test, declared_test, wrong, output, log):
    """Whether all that failed depends on time, and passes alone."""
    if SANITIZER.search(output) or not all("depends_on_time" in case for case in wrong):
        return False
    names = [case["case"] for case in wrong]
    command = [declared_test["command"][0], "--gtest_filter=" + ":".join(names)]
    if not repeated(command, declared_test["environment"], log):
        return False
    report.flaky += [f"{suite}: {name}" for name in names]
    report.failures = [entry for entry in report.failures if not entry[0].startswith(f"{suite}: {test} ")]
    return True


# lit

def lit_files(keep=lambda text: True):
    """Paths of lit's tests below test/, by what stands in them."""
    files = [file for folder in ("passes", "driver") for suffix in ("mlir", "test")
             for file in (ROOT / "test" / folder).rglob(f"*.{suffix}") if "Inputs" not in file.parts]
    return sorted(str(file.relative_to(ROOT / "test")) for file in files if keep(file.read_text(errors="replace")))


def is_document(text):
    """Compares a page with the tree, or runs its commands."""
    return ".md" in text


def has_more(text):
    """Whether a larger scope runs more of it."""
    return needs_scope(text) or "%if scope-" in text


def needs_scope(text):
    return re.search(r"REQUIRES:.*scope-", text) is not None


def lit_tests(report, build, files, jobs):
    """These tests. One that needs what is not here is none; what it needs is said."""
    result = LOGS / (report.stage_name.replace(" ", "-").replace(":", "") + ".json")
    output = None  # the end of what a test printed that failed

    def on_line(line):
        nonlocal output
        begun = re.match(r"(FAIL|TIMEOUT|UNRESOLVED|XPASS): boa :: (\S+)", line)
        if begun:
            output = collections.deque(maxlen=40)
            report.failure(f"lit: {begun.group(2)}", f"{LIT} -v {build}/test --filter '{begun.group(2)}'")
        elif output and line.startswith("*****"):
            say(*("     " + line for line in output))
            output = None
        elif output is not None and not line.startswith("*****"):
            output.append(line)

    names = "|".join(re.escape(file) for file in files)
    stream([LIT, "-v", "--no-progress-bar", "--timeout", str(LIMIT), "-j", str(jobs), "-o", str(result), "--filter", f":: ({names})$",
            f"{build}/test"], result.with_suffix(".log"), on_line)
    try:
        tests = json.loads(result.read_text())["tests"]
    except (OSError, ValueError):
        report.failure("lit ended without a result", f"{LIT} -v {build}/test")
        report.count(0, 1)
        return
    passed = failed = 0
    for test in tests:
        file = test["name"].split(" :: ")[-1]
        if test["code"] in ("PASS", "XFAIL", "FLAKYPASS"):
            passed += 1
        elif test["code"] == "UNSUPPORTED":
            features = re.search(r"unavailable features: (.*)", test["output"])
            names = features.group(1).split(", ") if features else [f"what-{os.path.basename(file)}-needs"]
            report.lacking |= {name.replace(" ", "") for name in names if not name.startswith("scope-")}
        elif test["code"] in ("FAIL", "XPASS", "TIMEOUT", "UNRESOLVED"):
            text = (ROOT / "test" / file).read_text(errors="replace")
            if "DEPENDS-ON-TIME" in text and not SANITIZER.search(test["output"]) and repeated(
                    [LIT, "-v", f"{build}/test", "--filter", f":: {re.escape(file)}$"], {}, result.with_suffix(".log")):
                report.flaky.append(f"lit: {file}")
                report.failures = [entry for entry in report.failures if entry[0] != f"lit: {file}"]
                passed += 1
            else:
                failed += 1
    report.count(passed, failed if passed or failed else 1)
    report.slowest([(test["name"].split(" :: ")[-1], test["elapsed"] or 0) for test in tests])


# scripts

def scripts(report, build, paths, scope, limit):
    """Scripts of test/e2e, one more at a time than there are cores, since some wait. A line `PASS ...` or `FAIL ...` is
    a case; one that says neither counts by its exit status."""
    environment = {**os.environ, "BOA": str(ROOT / build / "bin" / "boa")}
    lock = threading.Lock()
    times = []

    def run(path):
        name = path.name.removeprefix("run-")
        repeat = f"BOA_TEST_SCOPE={scope} BOA={build}/bin/boa {path.relative_to(ROOT)}"
        counts = {"PASS": 0, "FAIL": 0}
        shown = [0]

        def on_line(line):
            kind = line.split(" ", 1)[0]
            with lock:
                if kind in counts:
                    counts[kind] += 1
                if kind == "FAIL":
                    shown[0] = 20
                    report.failure(f"{name}: {line[5:]}", repeat)
                elif shown[0] and kind != "PASS":
                    shown[0] -= 1
                    say("     " + line)

        begun = os.times().elapsed
        status = stream(["timeout", str(limit), str(path)], LOGS / f"e2e-{name}.log", on_line, env=environment)
        with lock:
            times.append((name, os.times().elapsed - begun))
            if status and not counts["FAIL"]:
                counts["FAIL"] = 1
                tail = (LOGS / f"e2e-{name}.log").read_text(errors="replace").splitlines()[-20:]
                reason = f"stopped after {limit} s" if status == 124 else f"exit status {status}"
                report.failure(f"{name}: {reason}", repeat, tail)
            elif not status and not any(counts.values()):
                counts["PASS"] = 1
        return counts["PASS"], counts["FAIL"]

    with ThreadPoolExecutor(CORES + 1) as pool:
        results = list(pool.map(run, paths))
    report.count(sum(good for good, _ in results), sum(bad for _, bad in results))
    report.slowest(times)
