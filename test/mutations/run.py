#!/usr/bin/env python3
"""Deletes one safeguard, or mechanism of the schedule, at a time and sees whether the tests notice.

Reads mutations.toml and mechanisms.toml. Each mutation changes one place in a copy of a file. The
copy is compiled as the file is, and linked in its place into the check. The check runs for at most
a minute over a fixed range of seeds, and must fail. Nothing in the tree is touched.
Writes RESULTS.md, of which --only writes some rows anew. A row is stale if its function is
gone, or what it names in there. Stale rows are listed and not run. They are no failure.

  test/mutations/run.py [--build DIR] [--mechanisms] [--only WORD] [--new] [--jobs N] [--seconds N]
                        [--results FILE] [--dry]
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

import places

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What a check runs; the seeds are more than a minute has time for.
CHECKS = {
    "campaign": ["boa-campaign", "--seeds", "1..100000", "--failures", "1"],
    "flips": ["boa-campaign", "--flips", "3000"],
    "files": ["file_system_test", "--gtest_fail_fast"],
    "state": ["runtime_state_test", "--gtest_fail_fast"],
    "io": ["runtime_io_test", "--gtest_fail_fast", "--gtest_filter=*Lost*"],
    "faults": ["runtime_faults_test", "--gtest_fail_fast"],
    "trainer": ["trainer_test", "--gtest_fail_fast"],
    "engine": ["runtime_engine_test", "--gtest_fail_fast"],
    "cuda": ["runtime_cuda_test", "--gtest_fail_fast"],
    "dnn": ["runtime_cuda_dnn_test", "--gtest_fail_fast"],
    "kernels": ["boa-gradient-test", "--gtest_fail_fast",
                "--gtest_filter=*MatchesDouble*:*ForwardMatches*-*_rows_*:*128256*"],
}
# Of a GPU, emulated.
ENVIRONMENT = {"kernels": {"BOA_TEST_TARGET": "cuda"}}
TABLES = ["mutations.toml", "mechanisms.toml"]
LIT = pathlib.Path("/usr/lib/llvm-22/bin/lit")


def read_mutations(tables=TABLES):
    """The rows of the tables, each with its file, function, description and check."""
    rows = []
    for table in tables:
        for file, functions in tomllib.loads((HERE / table).read_text()).items():
            check = functions.pop("check", "campaign")
            for function, mutations in functions.items():
                rows += [{"file": file, "function": function, "what": what, "check": check, **row}
                         for what, row in mutations.items()]
    return rows


def is_lit(check):
    """Whether the check is a FileCheck test, by its file under test/. Others are a word of CHECKS, or a
    googletest binary and the tests of it to run: 'runtime_io_test *Deadline*'."""
    return check.endswith((".mlir", ".test"))


def target_of(check):
    """The binary that the mutated file is linked into."""
    if is_lit(check):
        return "boa-opt" if check.startswith("passes/") else "boa"
    return CHECKS[check][0] if check in CHECKS else check.split()[0]


def arguments_of(check):
    if check in CHECKS:
        return CHECKS[check][1:]
    return ["--gtest_fail_fast", f"--gtest_filter={check.split()[1]}"]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)


def compile_command(build, file):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] == str(ROOT / file):
            return shlex.split(entry["command"])
    raise SystemExit(f"{file} is not built in {build}")


def link_command(build, target):
    commands = run(["ninja", "-C", build, "-t", "commands", target], check=True).stdout
    return shlex.split(commands.strip().split("\n")[-1].replace(": && ", "").replace(" && :", ""))


def make(build, mutation, check, scratch):
    """The check with the mutated file in place of its own; or what the compiler said."""
    source, made = scratch / mutation["file"], scratch / "mutated.o"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(places.mutated((ROOT / mutation["file"]).read_text(), mutation))
    # A header is found before its own, by the source that includes it.
    compiled = mutation.get("included", mutation["file"])
    command = compile_command(build, compiled)
    command[command.index("-c") + 1] = str(ROOT / compiled if "included" in mutation else source)
    command[command.index("-o") + 1] = str(made)
    command.insert(next(i for i, word in enumerate(command) if word.startswith("-I")), f"-I{scratch}")
    # A precompiled header is for its own options.
    done = run(command if "-include-pch" in command else [*command, "-O1"], cwd=build)
    if done.returncode != 0:
        return None, done.stderr
    # Before the libraries, so that the file's own object is not taken from there.
    command = link_command(build, target_of(check))
    output = command.index("-o")
    binary = scratch / target_of(check)
    command[output + 1] = str(binary)
    command.insert(output, str(made))
    done = run(command, cwd=build)
    return (binary, "") if done.returncode == 0 else (None, done.stdout + done.stderr)


def run_check(build, binary, check, seconds):
    """Whether the check failed, after how long, and the first line that says why."""
    with tempfile.TemporaryDirectory() as scratch:
        return run_in(build, pathlib.Path(scratch), binary, check, seconds)


def lit_command(build, scratch, binary, check):
    """lit on one test, with this tool and the build's others."""
    tools = scratch / "bin"
    tools.mkdir()
    for tool in ("boa-opt", "boa", "boa-trainer"):
        tool = binary if tool == binary.name else build / "bin" / tool
        if tool.exists():
            (tools / tool.name).symlink_to(tool)
    (scratch / "lit.site.cfg.py").write_text(
        f"config.boa_bin = {str(tools)!r}\nconfig.test_exec_root = {str(scratch / 'lit')!r}\n"
        f"lit_config.load_config(config, {str(ROOT / 'test' / 'lit.cfg.py')!r})\n")
    return [LIT, "-v", scratch / check]


def run_in(build, scratch, binary, check, seconds):
    command = [binary, *arguments_of(check)] if not is_lit(check) else \
        lit_command(build, scratch, binary, check)
    if check == "campaign":
        command += ["--seconds", str(seconds)]
    begin = time.monotonic()
    try:
        done = run(command, timeout=seconds + 90, env={**os.environ, **ENVIRONMENT.get(check, {})})
        output, failed = done.stderr + done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired:
        output, failed = "hangs", True
    # Googletest prints a failure before the fake says at exit what is left.
    lines = [line for reason in (r"seed |flip |hangs|\[  FAILED  \]", "fake CUDA: left",
                                 r".*: error: |# \| .*: error: ")
             for line in output.split("\n") if re.match(reason, line)]
    why = lines[0] if lines else output.strip().split("\n")[-1]
    return failed, time.monotonic() - begin, why.replace(f"{ROOT}/", "")


def try_one(build, mutation, seconds):
    check = mutation["check"]
    with tempfile.TemporaryDirectory() as scratch:
        binary, errors = make(build, mutation, check, pathlib.Path(scratch))
        if not binary:
            return {**mutation, "errors": errors}
        failed, took, why = run_check(build, binary, check, seconds)
    return {**mutation, "failed": failed, "seconds": took, "why": why}


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def read_results():
    """The lines of RESULTS.md by what they delete."""
    results = HERE / "RESULTS.md"
    lines = results.read_text().split("\n") if results.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def write_results(rows, seconds, mutations, to):
    """Of the whole table, in its order; what was not run now stays as it was."""
    known = read_results()
    for row in rows:
        when = f"after {row['seconds']:.1f} s" if row["failed"] else "**NOT**"
        why = row["why"] if row["failed"] else row.get("note", "")
        known[cell(row["what"])] = (f"| {cell(row['what'])} | {row['file']} | {row['check']} | "
                                    f"{when} | {cell(why)[:160]} |")
    table = []
    for mutation in mutations:
        if line := known.get(cell(mutation["what"])):
            what, _, rest = line.split(" | ", 2)
            table.append(f"{what} | {mutation['file']} | {rest}")  # it may have moved
    caught = sum(" | **NOT** | " not in line for line in table)
    lines = ["# Mutations",
             "",
             "Each row deletes one safeguard or mechanism; the check that is named must fail then. Written by",
             f"`test/mutations/run.py`, with at most {seconds} seconds for each.",
             "",
             f"{caught} of {len(table)} are caught.",
             "",
             "| what is deleted | file | check | caught | by |",
             "|---|---|---|---|---|"]
    to.write_text("\n".join(lines + table) + "\n")


def main():
    # A shell's background ignores Ctrl-C, which some checks try.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--mechanisms", action="store_true", help="those of mechanisms.toml")
    parser.add_argument("--only", default="", help="those whose description or file has this")
    parser.add_argument("--new", action="store_true", help="those that have no result yet")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "RESULTS.md", metavar="FILE")
    parser.add_argument("--dry", action="store_true", help="only list stale rows")
    options = parser.parse_args()
    mutations = read_mutations()
    chosen = read_mutations(["mechanisms.toml"]) if options.mechanisms else mutations
    chosen = [m for m in chosen if options.only in m["what"] or options.only in m["file"]]
    if options.new:
        known = read_results()
        chosen = [m for m in chosen if cell(m["what"]) not in known]
    stale = []
    for mutation in chosen:
        try:
            places.mutated((ROOT / mutation["file"]).read_text(), mutation)
        except (OSError, places.Missing) as error:
            stale.append(mutation)
            print(f"STALE {mutation['file']}: {mutation['what']}: {error}", flush=True)
    chosen = [mutation for mutation in chosen if mutation not in stale]
    if options.dry:
        return 0

    build = options.build.resolve()
    checks = sorted({mutation["check"] for mutation in chosen})
    targets = sorted({target_of(check) for check in checks})
    subprocess.run(["cmake", "--build", build, f"-j{options.jobs}", "--target", *targets],
                   check=True, stdout=subprocess.DEVNULL)
    for check in checks:
        failed, _, why = run_check(build, build / "bin" / target_of(check), check, 15)
        if failed:
            print(f"{check} fails without any mutation: {why}")
            return 2
    rows, broken = {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(try_one, build, mutation, options.seconds): i
                   for i, mutation in enumerate(chosen)}
        for future in concurrent.futures.as_completed(futures):
            row = future.result()
            if "errors" in row:
                print(f"DOES NOT BUILD  {row['what']}\n{row['errors'][-1500:]}", flush=True)
                broken += 1
                continue
            rows[futures[future]] = row
            print(f"{'caught' if row['failed'] else 'NOT CAUGHT'} {row['seconds']:6.1f} s  "
                  f"{row['what']}{': ' + row['why'][:200] if row['failed'] else ''}", flush=True)
            write_results(rows.values(), options.seconds, mutations, options.results)
    missed = [row for row in rows.values() if not row["failed"] and "note" not in row]
    print(f"{len(rows)} mutations, {len(missed)} not caught, {broken} do not build, {len(stale)} stale")
    return 1 if missed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
