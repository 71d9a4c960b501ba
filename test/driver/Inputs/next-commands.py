"""next-commands.py TRAIN...: trains by the command TRAIN with --data of each line that it reads, and a state of its own.
Prints the command that the training ends with, runs it as a shell does, and prints its last line where it has a loss."""
import subprocess
import sys


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


for number, line in enumerate(sys.stdin.read().splitlines()):
    out = run([*sys.argv[1:], "--state", f"s{number}", "--data", line])
    command = out[out.rindex("\nnext: ") + len("\nnext: "):]
    print(command, end="")
    text = run(["bash", "-c", command])
    if "evaluate" in command:
        print(text.splitlines()[-1])
