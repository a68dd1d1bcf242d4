"""``pytest --npu-sim``: tests written for an NPU run on the simulated one."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("npu-sim", "simulated Ascend NPU (npuport)")
    group.addoption("--npu-sim", action="store_true", help="run the tests on a simulated Ascend NPU")
    group.addoption("--npu-sim-devices", type=int, metavar="N", help="simulated devices (default 1)")
    group.addoption("--npu-sim-chip", metavar="C", help="the simulated chip (default Ascend910B3)")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before a conftest.py can import torch, and while output is shown
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    chosen = early_config.known_args_namespace
    if chosen.npu_sim:
        _start(chosen.npu_sim_chip, chosen.npu_sim_devices)
    elif chosen.npu_sim_chip is not None or chosen.npu_sim_devices is not None:
        raise pytest.UsageError("--npu-sim-chip and --npu-sim-devices say what is simulated; add --npu-sim")
    return (yield)


def pytest_report_header(config: pytest.Config) -> str | None:
    from npuport.sim import present_options
    from npuport.sim.launch import announcement

    return f"npu-sim: {announcement(present_options())}" if config.getoption("npu_sim") else None


def _start(chip: str | None, devices: int | None) -> None:
    from npuport.report.run_files import say
    from npuport.sim import SimOptions, SimulationUnavailable, activate, is_active, present_options

    try:
        if is_active():
            _expect(present_options(), chip, devices)
        elif "torch" in sys.modules:
            raise pytest.UsageError(
                "torch was imported before pytest came to --npu-sim: by another plugin, or with -p.\n"
                "  npuport run --sim -- pytest …   puts the whole process on the simulated NPU"
            )
        else:
            options = SimOptions()
            activate(SimOptions(chip or options.chip, options.devices if devices is None else devices), say)
    except (SimulationUnavailable, ValueError) as error:
        raise pytest.UsageError(str(error)) from error


def _expect(present: Any, chip: str | None, devices: int | None) -> None:
    """This process is in a simulated run: one that pytest-xdist started, or the user with ``npuport run --sim``."""
    from npuport.sim import SimOptions

    wanted = SimOptions(chip or present.chip, present.devices if devices is None else devices)
    if (wanted.chip, wanted.devices) != (present.chip, present.devices):
        raise pytest.UsageError(
            f"pytest runs on {present.devices} simulated {present.chip} already, so it cannot have "
            f"{wanted.devices} {wanted.chip}.\n  Say it to npuport run --sim (--chip, --devices), or leave it out there"
        )
