"""A compiler for tests: its "models" are "do" and the steps that it is to take. ``fold`` is a pass,
``+fold`` its begin, ``-fold`` its end; ``fold?`` and ``fold!`` a line of its log that says that the
pass changed nothing, or something; others are in ``STEPS``. Any other model takes ``TRIVIAL``."""

from __future__ import annotations

import ctypes
import sys
import time

NAME = "counting"
LOWERING = "onnx"
MODES = ("compiled",)
DEVICES = ("board", "toaster")

PASS_LOG = (("end", r"\[log\] (\w+) changed"), ("idle", r"\[log\] (\w+) idle"))


class Runner:
    def __init__(self, device, announce):
        if device == "moon":
            raise ValueError("no such platform: moon")
        self.device = device
        self.announce = announce
        self.kept = []

    def versions(self):
        return {"counting": "2.0", "platform": self.device}

    def run(self, model, inputs, mode, disabled):
        steps = model.decode().split()[1:] if model.startswith(b"do ") else TRIVIAL
        for step in steps:
            STEPS.get(step, self.do)(step)
        return ()

    def do(self, step):
        if step.startswith("-"):
            self.announce.end(step[1:])
        elif step.startswith("+"):
            self.announce.begin(step[1:])
        elif step.endswith("?"):
            print(f"[log] {step[:-1]} idle", file=sys.stderr)
        elif step.endswith("!"):
            print(f"[log] {step[:-1]} changed", file=sys.stderr)
        else:
            self.announce.begin(step)
            self.announce.end(step)

    def passes(self, model):
        return ()

    def is_unsupported(self, error):
        return "do not do" in str(error)


def fail(step):
    raise ValueError("what is this?" if step == "fail" else "we do not do this")


def crash(step):
    ctypes.string_at(0)


def hang(step):
    time.sleep(60)


def grow(step):
    kept = bytearray(600 << 20)
    time.sleep(60)
    return kept


STEPS = {"fail": fail, "decline": fail, "crash": crash, "hang": hang, "grow": grow}
TRIVIAL = ["import", "+session", "one?", "two?", "three?", "two?", "-session"]
