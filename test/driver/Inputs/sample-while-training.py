"""sample-while-training.py SPEC STATE: samples from a state while a training commits after each step.

First all weights stay in memory, then some are read for each token. The training goes on meanwhile, and
each byte of the state that it leaves is right. `boa` is found by PATH.
"""
import re
import subprocess
import sys
import time

SPEC, STATE = sys.argv[1:]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def boa(*arguments):
    done = subprocess.run(["boa", *arguments], capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout + done.stderr


def steps():
    done = subprocess.run(["boa", "state", STATE], capture_output=True, text=True)
    return [int(step) for step in re.findall(r"step (\d+), committed", done.stdout)]


def sample(*more):
    said = boa("sample", SPEC, "--state", STATE, "--prompt", "In", "--length", "300", "--timing", *more)
    number, unit = re.search(r"memory ([\d.]+) (\w+)$", said.strip()).groups()
    return float(number) * UNITS[unit], int(re.search(r"(\d+) bytes read", said)[1])


training = subprocess.Popen(["boa", "train", SPEC, "--state", STATE, "--quiet", "--set",
                             "train.steps=1000000", "--set", "train.commit=every(1)"])
try:
    while not steps() or steps()[-1] == 0:
        assert training.poll() is None
        time.sleep(0.05)
    begun = steps()
    memory, read = sample()
    assert read == 0
    half = f"{int(memory * 0.85) // 2048}KiB"
    memory, read = sample("--set", f"machine.host.memory={half}", "--set", f"machine.device.memory={half}")
    assert read > 0
    assert training.poll() is None and steps()[-1] > begun[-1] + 1, (begun, steps())
    training.terminate()
    training.wait(timeout=60)
    print(f"{read} bytes read a token; " + boa("state", STATE, "--check").splitlines()[-1])
finally:
    training.kill()
