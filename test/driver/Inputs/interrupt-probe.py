"""interrupt-probe.py DIR: interrupts a probe of DIR while it has its scratch file open, and says how
it ended and how many files are in DIR."""
import glob
import os
import signal
import subprocess
import sys
import time

probe = subprocess.Popen(["boa", "probe", "--path", sys.argv[1], "-o", "other.boa"],
                         stdout=subprocess.DEVNULL,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def scratch():
    for link in glob.glob(f"/proc/{probe.pid}/fd/*"):
        try:
            if ".boa-probe-" in os.readlink(link):
                return True
        except OSError:
            pass
    return False


end = time.monotonic() + 10
while not scratch() and probe.poll() is None and time.monotonic() < end:
    time.sleep(0.01)
used = "in use" if scratch() else "not found"
probe.send_signal(signal.SIGINT)
print(f"signal {-probe.wait()}, scratch file {used}, {len(os.listdir(sys.argv[1]))} files")
