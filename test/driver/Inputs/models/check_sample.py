"""check_sample.py TMP MODEL...: texts of models of this folder, with a cache of keys and values and
without one, are the same, and so are the logits, to 1e-5 of the largest. The texts are longer than the
context. With weights read from SSD for each token, the logits are the same bits.

`boa` is found by PATH.
"""
import array
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def boa(*arguments):
    done = subprocess.run(["boa", *map(str, arguments)], capture_output=True)
    assert done.returncode == 0, (arguments, done.stderr.decode())
    return done.stdout, done.stderr.decode()


class Sampler:
    def __init__(self, tmp, name, prompt, length, *more):
        self.spec, self.logits = tmp / f"{name}.boa", tmp / f"{name}.logits"
        self.state = tmp / f"{name}.sampled"
        self.request = ["--prompt", prompt, "--length", length, "--temperature", 0, "--timing",
                        "--logits", self.logits, *more]

    def run(self, *more):
        """Text, logits, and bytes in memory and read for each token."""
        # Its letters are tokens of the models' small vocabularies.
        text, notes = boa("sample", self.spec, "--state", self.state, *self.request,
                          "--set", f"train.data={HERE / 'text.txt'}", "--set", "train.weights=f32",
                          *more)
        number, unit = re.search(r"memory ([\d.]+) (\w+)$", notes.strip()).groups()
        read = int(re.search(r"(\d+) bytes read", notes)[1])
        return text, self.logits.read_bytes(), float(number) * UNITS[unit], read


def check(sampler):
    text, logits, memory, read = sampler.run()
    assert read == 0
    other, whole, _, _ = sampler.run("--no-cache")
    assert text == other, (text, other)
    found, expected = array.array("f", logits), array.array("f", whole)
    assert len(found) == len(expected) > 0
    worst = max(abs(a - b) for a, b in zip(found, expected)) / max(map(abs, expected))
    assert worst < 1e-5, worst
    return len(text), logits, memory


def check_streamed(sampler, logits, memory):
    # Less memory than before, so that not all weights stay in it.
    limit = int(memory * 0.85) // 1024
    _, streamed, taken, read = sampler.run("--set", f"machine.host.memory={limit}KiB")
    assert taken <= limit * 1024 and read > 0, (taken, limit, read)
    assert streamed == logits
    return read


def main():
    tmp = Path(sys.argv[1])
    for name in sys.argv[2:]:
        sampler = Sampler(tmp, name, "In the", 40)
        boa("import", HERE / name, "-o", sampler.spec, "--state", sampler.state, "--context", 16)
        size, logits, memory = check(sampler)
        read = check_streamed(sampler, logits, memory)
        print(f"{name}: {size} bytes alike, {read} bytes read a token")
    # A prompt of several pieces. The last one reaches back.
    size, _, _ = check(Sampler(tmp, sys.argv[-1], ("In the beginning " * 40)[:530], 20, "--set",
                               "model.context=640", "--changed-model"))
    print(f"a long prompt: {size} bytes alike")


if __name__ == "__main__":
    main()
