"""on-terminal.py COMMAND...: runs it with a terminal as its output, and says what of that a terminal would obey.

Colours and lines that are written over go to standard error, which is none here.
"""
import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=theirs)
os.close(theirs)
output = b""
try:
    while block := os.read(ours, 4096):
        output += block
except OSError:  # the other end is closed
    pass
assert process.wait() == 0
text = output.replace(b"\r\n", b"\n")  # which the terminal makes of a newline
try:
    decoded = text.decode()
except UnicodeDecodeError as error:
    decoded = f"\x00{error}"
controls = sorted({c for c in decoded if c not in "\n\t" and (c < " " or "\x7f" <= c < "\xa0")})
ends, twice, escaped = text.endswith(b"\n"), text.endswith(b"\n\n"), b"\\x" in text
print(f"{len(text)} bytes, controls {controls}, ends with a newline: {ends}, twice: {twice}, escaped: {escaped}")
