"""Prints the commands of a page that need only boa: its indented lines that begin with one."""
import re
import sys

with open(sys.argv[1]) as page:
    for line in page:
        command = re.match(r"    ((?:boa|export|state/\S+) .*)", line)
        if command:
            print(command.group(1))
