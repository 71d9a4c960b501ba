"""What the scripts of this folder share: a small model, small machines, and calls of boa."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXAMPLES = os.path.join(ROOT, "examples")
BOA = os.environ.get("BOA", os.path.join(ROOT, "build", "release", "bin", "boa"))
ROLES = ["weights", "gradients", "optimizer", "checkpoints", "boundary_gradients"]

# Of different balance. Rates are small, as the model is.
MACHINES = {
    "slow-disk": "device cpu { memory = 1300 KiB  compute = 1 GFLOP/s  bandwidth = 1 GB/s } "
                 "host { optimizer = 1 GB/s } ssd \"state\" { read = 2 MB/s  write = 1 MB/s }",
    "slow-compute": "device cpu { memory = 1200 KiB  compute = 100 MFLOP/s  bandwidth = 1 GB/s } "
                    "host { optimizer = 1 GB/s } ssd \"state\" { read = 50 MB/s  write = 30 MB/s }",
    "slow-copies": "device split { memory = 900 KiB  compute = 1 GFLOP/s  bandwidth = 1 GB/s  "
                   "to_device = 5 MB/s  to_host = 5 MB/s } host { memory = 1 MiB  optimizer = 1 GB/s } "
                   "ssd \"state\" { read = 20 MB/s  write = 10 MB/s }",
    "little-host": "device split { memory = 1 MiB  compute = 500 MFLOP/s  bandwidth = 500 MB/s  "
                   "to_device = 50 MB/s  to_host = 50 MB/s } host { memory = 600 KiB  "
                   "optimizer = 100 MB/s } ssd \"state\" { read = 6 MB/s  write = 3 MB/s }",
    "two-disks": "device cpu { memory = 1600 KiB  compute = 300 MFLOP/s  bandwidth = 500 MB/s } "
                 "host { optimizer = 50 MB/s } ssd \"a\" { read = 6 MB/s  write = 2 MB/s } "
                 "ssd \"b\" { read = 3 MB/s  write = 3 MB/s }",
}


class Failed(Exception):
    """boa refused; the text is what it said."""


def boa(*arguments):
    """What it prints. Raises Failed with its diagnostics."""
    done = subprocess.run([BOA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode:
        raise Failed(done.stderr)
    return done.stdout


class Workplace:
    """A folder with the model and one machine."""

    def __init__(self, machine, batch=8):
        self.folder = tempfile.TemporaryDirectory()
        self.files = 0
        with open(os.path.join(ROOT, "test", "driver", "Inputs", "small.boa")) as file:
            text = file.read().split("\nplan {")[0] + "\n"
        text = text.replace("../../../examples", EXAMPLES).replace("batch     = 8",
                                                                  f"batch     = {batch}")
        self.model = self.write(text)
        self.machine = self.write(f"machine small {{ {machine} }}\n")

    def write(self, text):
        self.files += 1
        path = os.path.join(self.folder.name, f"{self.files}.boa")
        with open(path, "w") as file:
            file.write(text)
        return path

    def simulate(self, plan, *settings):
        """Seconds of a steady step under the text of a plan block. Raises Failed."""
        metrics = os.path.join(self.folder.name, "metrics.jsonl")
        more = [word for setting in settings for word in ("--set", setting)]
        if os.path.exists(metrics):
            os.unlink(metrics)
        boa("simulate", self.model, self.machine, self.write(plan), "--steps", "5", "--metrics",
            metrics, *more)
        with open(metrics) as file:
            seconds = [json.loads(line)["seconds"] for line in file]
        # As the planner takes it: the first steps fill memory, the last one drains.
        return (seconds[2] + seconds[3]) / 2

    def plan(self, *settings):
        """The chosen block, its seconds in simulation, and what boa plan prints."""
        path = os.path.join(self.folder.name, "chosen.boa")
        more = [word for setting in settings for word in ("--set", setting)]
        text = boa("plan", self.model, self.machine, "--write", path, *more)
        with open(path) as file:
            block = file.read()
        machines = [setting for setting in settings if setting.startswith("machine.")]
        return block, self.simulate(block, *machines), text


def gains(text):
    """The table of a plan: from resources to the percent that a tenth more gains."""
    table = re.search(r"with a tenth more of.*\n((?:  \S.*%\n)*)", text)
    return {line[:38].strip(): float(line.split()[-1].rstrip("%"))
            for line in table.group(1).splitlines()}


def end(failures):
    for failure in failures:
        print(f"FAILED: {failure}")
    sys.exit(1 if failures else 0)
