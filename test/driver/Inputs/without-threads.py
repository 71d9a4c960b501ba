"""without-threads.py COMMAND...: becomes the command, whose starts of threads and processes fail, as where the
limit of processes is reached (EAGAIN, by seccomp)."""
import ctypes
import os
import platform
import struct
import sys

CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
CLONE3, EAGAIN = 435, 11
LOAD, EQUAL, GIVE = 0x20, 0x15, 0x06
steps = [(LOAD, 0, 0, 0), (EQUAL, 1, 0, CLONE3), (EQUAL, 0, 1, CLONE),
         (GIVE, 0, 0, 0x50000 | EAGAIN), (GIVE, 0, 0, 0x7fff0000)]


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = Program(len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
    sys.exit("no seccomp")
os.execvp(sys.argv[1], sys.argv[1:])
