"""What `tools/check` says: stages with their times, counts by suite, failures as they happen, the summary."""
import json
import re
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "check"


def say(*lines):
    print(*lines, sep="\n", flush=True)


def processor_seconds():
    """Of all ended processes that were started here, with theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def budgets():
    """Processor seconds by suite: the table of test/README.md."""
    text = (ROOT / "test" / "README.md").read_text()
    return {name: int(seconds.replace(",", ""))
            for name, seconds in re.findall(r"^\| `([^`]+)` \| [^|]* \| ([\d,]+) \|", text, re.M)}


class Report:
    def __init__(self):
        self.began = time.monotonic()
        self.suites = []  # [name, passed, failed]
        self.failures = []  # (what failed, command that repeats it)
        self.flaky = []
        self.lacking = set()
        self.over = []
        self.budgets = budgets()
        self.stage_name = None

    def stage(self, name):
        """Begins a stage; the one before it ends."""
        self.end_stage()
        self.stage_name, self.stage_began, self.stage_used = name, time.monotonic(), processor_seconds()
        say("", f"== {name}")

    def end_stage(self):
        if self.stage_name is None:
            return
        used = processor_seconds() - self.stage_used
        say(f"-- {self.stage_name}: {time.monotonic() - self.stage_began:.0f} s, {used:.0f} s of processors")
        budget = self.budgets.get(self.stage_name)
        if budget and used > budget:
            self.over.append(f"{self.stage_name}: {used:.0f} s of processors, {budget} s are its budget")
            say(f"over budget: {self.over[-1]}")
        self.stage_name = None

    def count(self, passed, failed):
        """Of the stage that runs."""
        self.suites.append([self.stage_name, passed, failed])
        say(f"{self.stage_name}: {passed} passed, {failed} failed")

    def failure(self, what, repeat, details=()):
        """Said at once, with the command that repeats it, and again at the end."""
        self.failures.append((what, repeat))
        say(f"FAIL {what} (after {time.monotonic() - self.began:.0f} s)", f"     repeat: {repeat}", *(f"     {line.rstrip()}" for line in details))

    def slowest(self, times):
        """times: of pairs of a name and seconds."""
        most = sorted(times, key=lambda pair: -pair[1])[:5]
        if most:
            say("slowest: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in most))

    def add(self, path):
        """The counts that a run before this one kept."""
        kept = json.loads(path.read_text())
        self.suites, self.flaky, self.lacking = kept["suites"], kept["flaky"], set(kept["lacking"])
        self.began -= kept["seconds"]

    def keep(self, path):
        path.write_text(json.dumps({"suites": self.suites, "flaky": self.flaky, "lacking": sorted(self.lacking),
                                    "seconds": time.monotonic() - self.began}))

    def finish(self):
        """Prints the summary, and ends the process: status 0 if nothing failed."""
        self.end_stage()
        say("")
        for what, repeat in self.failures:
            say(f"FAIL {what} (after {time.monotonic() - self.began:.0f} s)", f"     repeat: {repeat}")
        for name, passed, failed in self.suites:
            say(f"{name:34} {passed:5} passed {failed:5} failed")
        say(f"in {time.monotonic() - self.began:.0f} s")
        for line in self.over:
            say(f"over budget: {line}")
        for name in self.flaky:
            say(f"flaky: {name} failed, and passed alone")
        if self.lacking:
            say("not run here, for want of: " + " ".join(sorted(self.lacking)))
        passed = sum(suite[1] for suite in self.suites)
        failed = sum(suite[2] for suite in self.suites)
        say(f"{passed} passed, {failed} failed")
        sys.exit(failed > 0)
