"""What `simulated` and `chosen` share: calls of boa, and machines that `boa probe` measured."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SPEC = os.path.join(HERE, "gpt86m.boa")
BOA = os.path.join(ROOT, "build", "release", "bin", "boa")
MIB = 1 << 20


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def spec_text():
    """The bench's spec, to be written into any folder."""
    with open(SPEC) as file:
        return file.read().replace("../../examples", os.path.join(ROOT, "examples"))


def probe(boa, scratch):
    """The machine that `boa probe` measures, as a text."""
    machine = os.path.join(scratch, "machine.boa")
    run([boa, "probe", "--path", os.path.join(scratch, "state"), "-o", machine])
    with open(machine) as file:
        text = file.read()
    os.unlink(machine)
    return text


def with_paths(text, scratch, ssds):
    """A file of a probed machine with these paths instead of its own: (path, rate), at the probe's
    rates where the rate is 0."""
    block = re.compile(r'  ssd "[^"]*"( \{.*?\n  \}\n)', re.DOTALL)
    rates = block.search(text).group(1)
    text = block.sub("", text).rstrip().removesuffix("}")
    for path, held in ssds:
        text += f'  ssd "{path}"' + (rates if not held else
                                     f" {{ read = {held} B/s  write = {held} B/s }}\n")
    copy = os.path.join(scratch, "with-paths.boa")
    with open(copy, "w") as file:
        file.write(text + "}\n")
    return copy
