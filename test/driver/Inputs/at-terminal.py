"""at-terminal.py STEPS COMMAND...: runs a command at a terminal, as a person does.

STEPS are lines of WORD TEXT, in which \\n, \\x03 and so on are Python's: `wait` reads until TEXT comes, `prompt` also until
the command itself shows what is typed, `type` sends it, `kill` sends the signal of this name, `close` closes the terminal
and ends. Prints all that the terminal showed, and what of that a terminal would obey, but for the backspaces of an edited
line; then how the command ended, and whether the terminal works as before.
"""
import os
import pty
import select
import signal
import sys
import termios
import time

SECONDS = 60


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


class Terminal:
    def __init__(self, command):
        self.shown = b""
        self.seen = 0  # bytes before which nothing is waited for
        self.process, self.file = pty.fork()
        if self.process == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # which lit ignores
            os.environ.update(TERM="dumb", LC_ALL="C")
            os.execvp(command[0], command)
        self.modes = termios.tcgetattr(self.file)

    def read(self):
        """Whether there was more."""
        if not select.select([self.file], [], [], SECONDS)[0]:
            sys.exit(f"nothing came in {SECONDS} seconds behind: {self.shown!r}")
        try:
            block = os.read(self.file, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += block
        return bool(block)

    def wait(self, text):
        while (at := self.shown.find(text, self.seen)) < 0:
            if not self.read():
                sys.exit(f"it ended before {text!r}: {self.shown!r}")
        self.seen = at + len(text)

    def prompt(self, text):
        self.wait(text)
        end = time.monotonic() + SECONDS
        while termios.tcgetattr(self.file)[3] & termios.ECHO:
            if time.monotonic() > end:
                sys.exit(f"the terminal still echoes behind: {self.shown!r}")
            time.sleep(0.001)

    def type(self, text):
        os.write(self.file, text)

    def kill(self, name):
        os.kill(self.process, getattr(signal, name.decode()))

    def close(self, _):
        os.close(self.file)
        print("status", os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1]))
        sys.exit()

    def end(self):
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


terminal = Terminal(sys.argv[2:])
with open(sys.argv[1]) as steps:
    for line in steps:
        if line.strip():
            word, text = line.rstrip("\n").split(" ", 1)
            getattr(terminal, word)(unescape(text))
status = terminal.end()
same = termios.tcgetattr(terminal.file) == terminal.modes
text = terminal.shown.decode()
print(text.replace("\r", ""))
controls = sorted({c for c in text if c not in "\n\t\r\b" and (c < " " or "\x7f" <= c < "\xa0")})
print(f"controls {controls}, escaped: {chr(92) + 'x' in text}, status {status}, terminal as before: {same}")
