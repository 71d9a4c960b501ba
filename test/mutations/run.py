#!/usr/bin/env python3
"""Deletes one safeguard of the runtime at a time and sees whether the tests notice.

Reads mutations.toml. The tree is copied once; each mutation is one exact piece of
text that is replaced in the copy, built, and run against a fixed range of seeds for
at most a minute: the check must fail. Writes RESULTS.md. A text that is not found
once and only once is an error: the table is behind the code.

  test/mutations/run.py [--work DIR] [--only WORD] [--jobs N] [--seconds N]
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What a check runs; the seeds are more than a minute has time for.
CHECKS = {
    "campaign": ["boa-campaign", "--seeds", "1..100000", "--failures", "1"],
    "flips": ["boa-campaign", "--flips", "3000"],
    "files": ["file_system_test", "--gtest_fail_fast"],
}
TARGETS = sorted({command[0] for command in CHECKS.values()})


def copy_tree(work):
    """What git would commit; only what changed, so that builds stay incremental."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, names):
        source, target = ROOT / name, work / name
        if not source.is_file():
            continue
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def build(work, jobs, targets):
    return subprocess.run(["cmake", "--build", work / "build", f"-j{jobs}", "--target", *targets],
                          capture_output=True, text=True)


def configure(work):
    subprocess.run(["cmake", "-G", "Ninja", "-S", work, "-B", work / "build", "-DBOA_COMPILER=OFF",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
                    "-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22",
                    "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld-22"], check=True, capture_output=True)


def run_check(work, check, seconds):
    """Whether the check failed, after how long, and the first line that says why."""
    command = list(CHECKS[check])
    if check == "campaign":
        command += ["--seconds", str(seconds)]
    command[0] = work / "build" / "bin" / command[0]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=seconds + 90)
        output, failed = done.stderr + done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired:
        output, failed = "hangs", True
    lines = [line for line in output.split("\n")
             if re.match(r"seed |flip |hangs|\[  FAILED  \]", line)]
    why = lines[0] if lines else output.strip().split("\n")[-1]
    return failed, time.monotonic() - begin, why


def mutate(work, mutation):
    path = work / mutation["file"]
    text = path.read_text()
    if text.count(mutation["find"]) != 1:
        return None
    path.write_text(text.replace(mutation["find"], mutation["replace"]))
    return path, text


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def write_results(rows, seconds):
    caught = sum(row["failed"] for row in rows)
    lines = ["# Mutations",
             "",
             "Each row deletes one safeguard; the check that is named must fail then. Written by",
             f"`test/mutations/run.py`, with at most {seconds} seconds for each.",
             "",
             f"{caught} of {len(rows)} are caught.",
             "",
             "| what is deleted | file | check | caught | by |",
             "|---|---|---|---|---|"]
    for row in rows:
        when = f"after {row['seconds']:.1f} s" if row["failed"] else "**NOT**"
        why = row["why"] if row["failed"] else row.get("note", "")
        lines.append(f"| {cell(row['what'])} | {row['file']} | {row['check']} | {when} | "
                     f"{cell(why)[:160]} |")
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "mutations")
    parser.add_argument("--only", default="", help="those whose description has this word")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--dry", action="store_true", help="only look for the texts")
    options = parser.parse_args()
    mutations = tomllib.loads((HERE / "mutations.toml").read_text())["mutation"]
    chosen = [m for m in mutations if options.only in m["what"] or options.only in m["file"]]
    errors = [f"{m['file']}: {m['what']}: the text is there "
              f"{(ROOT / m['file']).read_text().count(m['find'])} times"
              for m in chosen if (ROOT / m["file"]).read_text().count(m["find"]) != 1]
    if errors or options.dry:
        print("\n".join(errors))
        return 2 if errors else 0

    work = options.work
    work.mkdir(parents=True, exist_ok=True)
    copy_tree(work)
    configure(work)
    if (built := build(work, options.jobs, TARGETS)).returncode != 0:
        print(built.stdout[-3000:])
        return 2
    for check in CHECKS:
        failed, seconds, why = run_check(work, check, 15)
        if failed:
            print(f"{check} fails without any mutation: {why}")
            return 2
    rows, broken = [], 0
    for mutation in chosen:
        check = mutation.get("check", "campaign")
        path, text = mutate(work, mutation)
        try:
            built = build(work, options.jobs, [CHECKS[check][0]])
            if built.returncode != 0:
                print(f"DOES NOT COMPILE  {mutation['what']}\n{built.stdout[-1500:]}", flush=True)
                broken += 1
                continue
            failed, seconds, why = run_check(work, check, options.seconds)
        finally:
            path.write_text(text)
        rows.append({**mutation, "check": check, "failed": failed, "seconds": seconds, "why": why})
        print(f"{'caught' if failed else 'NOT CAUGHT'} {seconds:6.1f} s  {mutation['what']}"
              f"{': ' + why[:200] if failed else ''}", flush=True)
        if not options.only:
            write_results(rows, options.seconds)
    missed = [row for row in rows if not row["failed"] and "note" not in row]
    print(f"{len(rows)} mutations, {len(missed)} not caught, {broken} do not compile")
    return 1 if missed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
