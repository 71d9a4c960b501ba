"""The stages of `tools/check`, which says how it is called."""
import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import reach
import suites
from report import LOGS, ROOT, Report, say

RELEASE = "build/release"
KEPT = LOGS / "quick.json"
# Each call of a device fails in turn: AddressSanitizer alone runs these, for they take long.
FAILING_CALLS = "*EachCallMayFail:*EachFunctionMayFail"


def compile_jobs():
    """A core each, and 2 GiB of memory, which MLIR's headers take. BOA_JOBS overrides."""
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    return int(os.environ.get("BOA_JOBS", max(1, min(suites.CORES, available // 2097152))))


def format_all(report):
    report.stage("format")
    sources = [path for folder in ("dialect", "frontend", "passes", "runtime", "test", "tools")
               for suffix in ("cpp", "h") for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))]

    def formatted(paths):
        """How many are. Most of a process's time is its start, so it takes many, and one by one if any is not."""
        if not subprocess.run(["clang-format-22", "--dry-run", "-Werror", *paths], capture_output=True).returncode:
            return len(paths)
        if len(paths) > 1:
            return sum(formatted([path]) for path in paths)
        name = paths[0].relative_to(ROOT)
        report.failure(f"not as clang-format-22 would have it: {name}", f"clang-format-22 -i {name}")
        return 0

    with ThreadPoolExecutor(suites.CORES) as pool:
        good = sum(pool.map(formatted, (sources[at:at + 32] for at in range(0, len(sources), 32))))
    report.count(good, len(sources) - good)


def build(report, preset, *targets):
    """Configures and builds build/PRESET. Counts only what does not build."""
    report.stage(f"build {preset}")
    log = ROOT / "build" / f"{preset}.log"
    command = ["cmake", "--build", "--preset", preset, "-j", str(compile_jobs()), "--target", *targets]
    status = suites.stream(["cmake", "--preset", preset], log.with_suffix(".configure.log"), lambda line: None)
    if status == 0:
        after = [0]

        def on_line(line):
            if "error:" in line or line.startswith("FAILED:"):
                after[0] = 6
            if after[0]:
                after[0] -= 1
                say("     " + line[:300])

        status = suites.stream(command, log, on_line)
    else:
        say(*log.with_suffix(".configure.log").read_text().splitlines()[-30:])
    if status:
        report.failure(f"{preset} does not build", f"cmake --preset {preset} && {' '.join(command)}")
        report.count(0, 1)
    return status == 0


def quick(report, parts):
    """What a change is tried by before it is sent."""
    format_all(report)
    if parts == {"documents"}:
        targets = ["boa", "boa-opt", "boa-trainer"]
    else:
        targets = ["tests_quick", "boa", "boa-opt", "boa-trainer"]
    if not build(report, "release", *targets):
        report.finish()
    jobs = compile_jobs()
    files = suites.lit_files(lambda text: not suites.needs_scope(text))
    documents = set(suites.lit_files(suites.is_document)) & set(files)
    report.stage("documents")
    suites.lit_tests(report, RELEASE, sorted(documents), jobs)
    if parts == {"documents"}:
        return
    report.stage("passes and driver")
    suites.lit_tests(report, RELEASE, [file for file in files if file not in documents and
                                       (file.startswith("driver/") or "compiler" in parts)], jobs)
    report.stage("unit tests")
    # By folder of ctest's tests; lit ran above.
    left_out = ["lit"]
    if "compiler" not in parts:
        left_out += ["frontend", "irgen", "computation", "optimizer", "gradients.*", "passes_random", "fake_.*",
                     "fuzz_spec", "fuzz_mlir"]
    os.environ["GTEST_FILTER"] = "-" + FAILING_CALLS
    # One more at a time than there are cores, since some wait.
    suites.unit_tests(report, RELEASE, "unit tests", "-L", "^quick$", "-E", f"^({'|'.join(left_out)})$",
                      jobs=suites.CORES + 1)
    del os.environ["GTEST_FILTER"]
    report.stage("end to end")
    suites.scripts(report, RELEASE, [ROOT / "test" / "e2e" / f"run-{name}" for name in
                                     ("equivalence", "kill")], "quick", 1200)


def rest(report, parts, nightly):
    """What continuous integration adds, in the order of failures seen a minute (test/README.md)."""
    scope = "nightly" if nightly else "all"
    os.environ["BOA_TEST_SCOPE"] = scope
    beyond = "^(all|nightly)$" if nightly else "^all$"
    if not build(report, "release", "tests_all", *(["tests_nightly"] if nightly else [])):
        report.finish()
    if parts & {"compiler", "runtime"}:
        report.stage("unit tests of a larger scope")
        suites.unit_tests(report, RELEASE, "unit tests of a larger scope", "-L", beyond, jobs=suites.CORES + 1)
    report.stage("end to end, all")
    races = ROOT / "test" / "e2e" / "run-races"  # needs the trainer of build/tsan
    suites.scripts(report, RELEASE, sorted(set((ROOT / "test" / "e2e").glob("run-*")) - {races}), scope,
                   14400 if nightly else 1200)
    if "runtime" in parts:
        # Where threads share something; at night the rest too.
        if build(report, "tsan", *(["all"] if nightly else ["tests_threads"]), "boa-trainer"):
            report.stage("ThreadSanitizer")
            if not nightly:
                os.environ["GTEST_FILTER"] = "-" + FAILING_CALLS
            with ThreadPoolExecutor(1) as beside:  # neither of the two keeps all cores at work
                examples = beside.submit(suites.scripts, report, RELEASE, [races], scope, 1200)
                suites.unit_tests(report, "build/tsan", "ThreadSanitizer", *([] if nightly else ["-L", "^threads$"]))
            examples.result()
            os.environ.pop("GTEST_FILTER", None)
        if build(report, "asan", "all"):
            report.stage("AddressSanitizer")
            suites.unit_tests(report, "build/asan", "AddressSanitizer", *([] if nightly else ["-LE", "^nightly$"]))
    report.stage("passes and driver of a larger scope")
    suites.lit_tests(report, RELEASE, suites.lit_files(suites.has_more), compile_jobs() + 1)
    if nightly:
        night(report)


def night(report):
    if build(report, "fuzz", "fuzz"):
        report.stage("fuzz")
        os.environ.setdefault("BOA_FUZZ_SECONDS", "1200")
        one_script(report, ["test/fuzz/run"], "PASS")
    report.stage("mutations")
    one_script(report, ["test/mutations/run.py", "--jobs", str(suites.CORES), "--results", str(LOGS / "mutations.md")],
               "caught")


def one_script(report, command, good):
    """A script whose lines begin with what became of a case."""
    counts = [0, 0]

    def on_line(line):
        if line.startswith(good):
            counts[0] += 1
        elif line.startswith(("FAIL", "STALE", "NOT CAUGHT", "DOES NOT BUILD")):
            counts[1] += 1
            report.failure(line, " ".join(command))

    status = suites.stream(command, LOGS / (os.path.basename(command[0]) + ".log"), on_line, cwd=ROOT)
    report.count(counts[0], max(counts[1], int(status != 0)))


def main():
    parser = argparse.ArgumentParser(prog="tools/check", add_help=False)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--nightly", action="store_true")
    parser.add_argument("--since")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PATH"] = "/usr/lib/llvm-22/bin:" + os.environ["PATH"]
    # Read by test/lit.cfg.py and test/e2e/cases.py.
    os.environ["BOA_TEST_SCOPE"] = "quick"
    report = Report()
    parts = reach.ALL
    if arguments.since:
        parts = reach.reached(arguments.since)
        say(f"since {arguments.since} the change reaches: {', '.join(sorted(parts)) or 'nothing'}")
        if not parts:
            report.finish()
    if arguments.rest and KEPT.exists():
        report.add(KEPT)
    elif arguments.rest:
        sys.exit("tools/check: --rest goes on from a `tools/check` that passed; none did here")
    else:
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir(parents=True)
        quick(report, parts)
        report.end_stage()
        if not report.failures:
            report.keep(KEPT)
    if arguments.all or arguments.rest or arguments.nightly:
        rest(report, parts, arguments.nightly)
    report.finish()


main()
