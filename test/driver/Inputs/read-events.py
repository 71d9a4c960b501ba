"""Prints the events in a folder, as TensorBoard reads them: files by name, records checked, lost steps dropped.

    read-events.py DIR
"""
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        length, head = struct.unpack("<QI", data[:12])
        body, tail = data[12:12 + length], struct.unpack("<I", data[12 + length:16 + length])[0]
        assert head == masked(data[:8]) and tail == masked(body), "a wrong CRC"
        yield body
        data = data[16 + length:]


def fields(message):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 2:
            size = varint()
            value, at = message[at:at + size], at + size
        else:
            size = 8 if kind == 1 else 4
            value, at = struct.unpack("<d" if kind == 1 else "<f", message[at:at + size])[0], at + size
        yield key >> 3, value


steps = {}
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        for event in records(file.read()):
            parts = dict(fields(event))
            if 3 in parts:
                assert parts[3] == b"brain.Event:2"
            elif 7 in parts:
                steps = {step: values for step, values in steps.items() if step < parts[2]}
            else:
                assert parts[1] > 1.7e9, "no wall time"
                values = (dict(fields(value)) for key, value in fields(parts[5]) if key == 1)
                steps[parts[2]] = {value[1].decode(): value[2] for value in values}
for step, values in sorted(steps.items()):
    print(step, *(f"{tag}={value:.4f}" for tag, value in values.items()))
