"""Environment variables: CUDA spellings, misspelt names, values out of range, settings that contradict one another."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.snapshot import Environment
from npuport.facts import AscendVariable, all_ascend_variables, ascend_variable, chip, variable
from npuport.findings import say

_ASCEND_WORLD = ("ASCEND_", "HCCL_", "TORCH_HCCL_", "TORCH_NPU_", "PYTORCH_NPU_", "ACL_", "INF_NAN_", "TASK_QUEUE")
_ALLOCATOR = ("PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_DEBUGGING = {"ASCEND_LAUNCH_BLOCKING": ("1",), "ASCEND_GLOBAL_LOG_LEVEL": ("0", "1"), "HCCL_ENTRY_LOG_ENABLE": ("1",)}
_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY")
_TIMEOUTS = ("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_EVENT_TIMEOUT")
_LIKE = 0.85  # how alike a name must be to one that is read, from 0 to 1


@check("ND401")
def cuda_variable(env: Environment) -> Iterator[Problem]:
    """A CUDA or NCCL variable that has an Ascend name, which is not set."""
    if not env.has_npu:
        return
    for name, value in env.variables.items():
        entry = variable(name)
        if entry is None or entry.status != "renamed" or entry.counterpart is None or name in _ALLOCATOR:
            continue
        if entry.counterpart not in env.variables:
            yield Problem(
                say("{name} is set; on an NPU {counterpart} is read. {note}", name=name, counterpart=entry.counterpart,
                    note=entry.note),
                say("Set {counterpart}, with a value that it takes.", counterpart=entry.counterpart),
                (f"export {entry.counterpart}={value}",) if name == "CUDA_VISIBLE_DEVICES" else (),
            )  # fmt: skip


@check("ND402")
def misspelt_variable(env: Environment) -> Iterator[Problem]:
    """A name of the Ascend world that nothing reads, and that is nearly one that is read."""
    known = {entry.name for entry in all_ascend_variables()}
    for name in env.variables:
        if name in known or not name.startswith(_ASCEND_WORLD):
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=_LIKE)
        if near:
            yield Problem(
                say("{name} is set; did you mean {near}?", name=name, near=near[0]),
                say("Set the name that is read."),
                (f"export {near[0]}={env.variables[name]}", f"unset {name}"),
            )


@check("ND403")
def value_out_of_range(env: Environment) -> Iterator[Problem]:
    """A value that the variable does not take."""
    for name, value in env.variables.items():
        entry = ascend_variable(name)
        if entry is not None and not _takes(entry, value):
            yield Problem(
                say("{name} is {value}; it takes {values}.", name=name, value=value or "empty", values=_values(entry)),
                say(
                    "Set a value that it takes, or unset it (the default is {default}).",
                    default=entry.default or "none",
                ),
                (f"unset {name}",),
            )


@check("ND404")
def allocator_settings_clash(env: Environment) -> Iterator[Problem]:
    """Settings of the caching allocator that exclude one another."""
    if all(name in env.variables for name in _ALLOCATOR):
        yield Problem(
            say("Both PYTORCH_NPU_ALLOC_CONF and PYTORCH_ALLOC_CONF are set."),
            say("Unset one of them."),
            ("unset PYTORCH_ALLOC_CONF",),
        )
    for name in _ALLOCATOR:
        settings = dict(re.findall(r"(\w+):([^,\[]+)", env.variables.get(name, "")))
        clash = [key for key in ("max_split_size_mb", "garbage_collection_threshold") if key in settings]
        if settings.get("expandable_segments", "").strip().lower() == "true" and clash:
            yield Problem(
                say("{name} combines expandable_segments:True with {clash}.", name=name, clash=", ".join(clash)),
                say("Keep expandable_segments:True, which fights fragmentation best."),
                (f"export {name}=expandable_segments:True",),
            )
        split = settings.get("max_split_size_mb", "").strip()
        if split.isdecimal() and int(split) <= 20:
            yield Problem(
                say("{name} has max_split_size_mb:{split}.", name=name, split=split),
                say("Give more than 20."),
            )


@check("ND405")
def timeouts_in_wrong_order(env: Environment) -> Iterator[Problem]:
    """HCCL_CONNECT_TIMEOUT < HCCL_EXEC_TIMEOUT < HCCL_EVENT_TIMEOUT does not hold."""
    if not any(name in env.variables for name in _TIMEOUTS):
        return
    connect, execute, event = (_seconds(env, name) for name in _TIMEOUTS)
    # 0 means to wait for ever.
    if execute and connect >= execute:
        yield Problem(
            say(
                "HCCL_CONNECT_TIMEOUT is {connect} s, HCCL_EXEC_TIMEOUT {execute} s.", connect=connect, execute=execute
            ),
            say("Let HCCL_EXEC_TIMEOUT be the larger one."),
            (f"export HCCL_EXEC_TIMEOUT={connect + 1800}",),
        )
    if event and (execute == 0 or event <= execute):
        yield Problem(
            say("HCCL_EVENT_TIMEOUT is {event} s, HCCL_EXEC_TIMEOUT {execute} s (0: for ever).", event=event,
                execute=execute),
            say("Raise HCCL_EVENT_TIMEOUT above it; 0 there waits for ever too."),
            (f"export HCCL_EVENT_TIMEOUT={execute + 32 if execute else 0}",),
        )  # fmt: skip


@check("ND406")
def both_intra_node_links(env: Environment) -> Iterator[Problem]:
    """PCIe and RoCE are both asked for within a node."""
    if env.variables.get("HCCL_INTRA_PCIE_ENABLE") == env.variables.get("HCCL_INTRA_ROCE_ENABLE") == "1":
        yield Problem(
            say("HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1."),
            say("Keep one of them."),
            ("export HCCL_INTRA_PCIE_ENABLE=1 HCCL_INTRA_ROCE_ENABLE=0",),
        )


@check("ND407")
def overflow_mode_half_set(env: Environment) -> Iterator[Problem]:
    """Saturation is asked for on a chip that wants it confirmed."""
    forced = env.variables.get("INF_NAN_MODE_FORCE_DISABLE") == "1"
    both = any(known.overflow == "both" for name in env.chips if (known := chip(name)) is not None)
    if env.variables.get("INF_NAN_MODE_ENABLE") == "0" and not forced and both:
        yield Problem(
            say("INF_NAN_MODE_ENABLE is 0 on {chip}.", chip=env.chips[0]),
            say("Unset it, so that overflow gives Inf as on a GPU; or set INF_NAN_MODE_FORCE_DISABLE=1 too."),
            ("unset INF_NAN_MODE_ENABLE",),
        )


@check("ND408")
def visible_devices_wrong(env: Environment) -> Iterator[Problem]:
    """ASCEND_RT_VISIBLE_DEVICES is no rising list of devices that exist."""
    value = env.variables.get("ASCEND_RT_VISIBLE_DEVICES")
    if value is None:
        return
    words = [word.strip() for word in value.split(",")]
    count = len(env.npus) or len(env.devices.nodes)
    if not all(word.isdecimal() for word in words):
        wrong = say("not a list of numbers")
    elif sorted(set(map(int, words))) != list(map(int, words)):
        wrong = say("not rising, or with a number twice")
    elif count and max(map(int, words)) >= count:
        wrong = say("a number beyond the {count} devices here", count=count)
    else:
        return
    yield Problem(
        say("ASCEND_RT_VISIBLE_DEVICES is {value}: {wrong}.", value=value or "empty", wrong=wrong),
        say("Write device numbers from 0 on, rising, with commas."),
        ("export ASCEND_RT_VISIBLE_DEVICES=" + ",".join(map(str, range(count or 1))),),
    )


@check("ND409")
def debugging_left_on(env: Environment) -> Iterator[Problem]:
    """Settings for finding errors that slow every step."""
    for name, values in _DEBUGGING.items():
        if env.variables.get(name) in values:
            yield Problem(
                say("{name} is {value}.", name=name, value=env.variables[name]),
                say("Unset it for training in earnest."),
                (f"unset {name}",),
            )


@check("ND410")
def proxy_for_own_machines(env: Environment) -> Iterator[Problem]:
    """A proxy is set, and the machines of the job are not exempt."""
    proxy = next((name for name in _PROXIES if env.variables.get(name)), None)
    exempt = env.variables.get("no_proxy", "") + "," + env.variables.get("NO_PROXY", "")
    master = env.variables.get("MASTER_ADDR", "")
    if proxy is not None and master and master not in exempt.split(","):
        yield Problem(
            say("{proxy} is set, and MASTER_ADDR {master} is not in no_proxy.", proxy=proxy, master=master),
            say("Exempt the machines of the job."),
            (f"export no_proxy=localhost,127.0.0.1,{master}",),
        )


@check("ND411")
def task_queue_without_effect(env: Environment) -> Iterator[Problem]:
    """A task queue is asked for, and launches block."""
    queue = env.variables.get("TASK_QUEUE_ENABLE")
    if queue in ("1", "2") and env.variables.get("ASCEND_LAUNCH_BLOCKING") == "1":
        yield Problem(
            say("TASK_QUEUE_ENABLE is {queue} beside ASCEND_LAUNCH_BLOCKING=1.", queue=queue),
            say("Unset ASCEND_LAUNCH_BLOCKING."),
            ("unset ASCEND_LAUNCH_BLOCKING",),
        )


@check("ND412")
def strict_determinism_with_saturation(env: Environment) -> Iterator[Problem]:
    """Strict determinism of HCCL on chips, or with settings, that saturate."""
    if env.variables.get("HCCL_DETERMINISTIC", "").lower() != "strict":
        return
    saturating = [name for name in env.chips if (known := chip(name)) is not None and known.overflow == "saturation"]
    if saturating or env.variables.get("INF_NAN_MODE_FORCE_DISABLE") == "1":
        yield Problem(
            say("HCCL_DETERMINISTIC is strict, and overflow saturates here."),
            say("Use HCCL_DETERMINISTIC=true."),
            ("export HCCL_DETERMINISTIC=true",),
        )


def _takes(entry: AscendVariable, value: str) -> bool:
    if entry.kind == "choice":
        return value.lower() in {choice.lower() for choice in entry.choices}
    if entry.kind == "integer":
        if not re.fullmatch(r"-?\d+", value.strip()):
            return False
        return (entry.low is None or int(value) >= entry.low) and (entry.high is None or int(value) <= entry.high)
    return True


def _values(entry: AscendVariable) -> str:
    if entry.kind == "choice":
        return ", ".join(entry.choices)
    return f"{entry.low} – {entry.high}" if entry.high is not None else f">= {entry.low}"


def _seconds(env: Environment, name: str) -> int:
    """The value of a timeout, its default where it is unset or no number."""
    value, entry = env.variables.get(name, ""), ascend_variable(name)
    return int(value) if value.isdecimal() else int(entry.default if entry else 0)
