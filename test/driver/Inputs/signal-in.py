"""signal-in.py WHAT COMMAND...: runs the command and sends SIGTERM when WHAT is there: `handler`, as soon as
the process handles the signal, or else a word that it prints. Says how it ended, within how much time, and
what it said last. A run that ended before the signal runs again."""
import os
import signal
import subprocess
import sys
import time

what, command = sys.argv[1], sys.argv[2:]


def handles(pid):
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("SigCgt:"):
                return int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1
    return 0


for attempt in range(30):
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ""
    if what == "handler":
        while run.poll() is None and not handles(run.pid):
            time.sleep(0.0005)
    else:
        while what not in said and (line := run.stdout.readline()):
            said += line
    sent = time.monotonic()
    if run.poll() is None:
        os.kill(run.pid, signal.SIGTERM)
    said += run.stdout.read()
    status, took = run.wait(), time.monotonic() - sent
    if status != 0:
        break
print(f"status {status}, {'within five seconds' if took < 5 else f'{took:.1f} s'}: {said.splitlines()[-1]}")
