"""Switching the migration on and off: what it changed is back as it was."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="patches are torch's")

SNAPSHOT = """
import inspect, os, runpy, sys
import torch, torch.utils.cpp_extension

def snapshot():
    found = {("sys", "meta_path"): tuple(map(id, sys.meta_path))}
    found["registry"] = tuple(map(id, torch.serialization._package_registry))
    found["path_hooks"] = tuple(map(id, sys.path_hooks))
    found["environ"] = tuple(sorted(os.environ.items()))
    for owner in (inspect, runpy):
        found |= {(owner.__name__, name): id(value) for name, value in vars(owner).items()}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "torch":
            continue
        for attribute, value in list(vars(module).items()):
            found[name, attribute] = id(value)
            if isinstance(value, type) and value.__module__.partition(".")[0] == "torch":
                found |= {(name, attribute, each): id(kept) for each, kept in vars(value).items()}
    return found

from npuport.runtime import activation, libraries, on_npu
"""


def run(program: str) -> None:
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SNAPSHOT + program], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_deactivate_restores_every_attribute_and_counts() -> None:
    run("""
before = snapshot()
activation.activate()
activation.activate()
assert snapshot() != before and torch.Tensor.cuda.__module__ == "npuport.runtime.libraries"
activation.deactivate()
assert activation.is_active() and snapshot() != before
activation.deactivate()
assert not activation.is_active()
after = snapshot()
assert after == before, {k for k in after.keys() | before.keys() if after.get(k) != before.get(k)}
try:
    activation.deactivate()
except RuntimeError:
    pass
else:
    raise AssertionError("nothing was active")
""")


def test_failing_half_way_leaves_nothing() -> None:
    run("""
def fail(*_):
    raise OSError("no")
torch.serialization.register_package = fail
before = snapshot()
try:
    activation.activate()
except OSError:
    pass
else:
    raise AssertionError("it did not fail")
assert snapshot() == before and not activation.is_active()
""")
