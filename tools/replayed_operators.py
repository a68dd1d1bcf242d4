"""Replay calls of PyTorch's operator database on torch_npu's own kernels, in every dtype: what is CANN asked for?

Runs as a script in processes of its own: on the simulated NPU to trace calls, on a CANN that only takes notes
(recording_cann) to replay them.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import recording_cann

TRIED = (
    "float32", "float16", "bfloat16", "float64", "complex64", "complex128", "int64", "int32", "int16", "int8", "uint8",
    "bool",
)  # fmt: skip
LIMIT_S = 60  # for one operator
SAMPLES = 3  # of each overload, of different shapes where there are
_COMPOSED = "composed.pt"


def samples(device: str) -> dict[str, list[tuple[Any, ...]]]:
    """Overload -> its calls (arguments, keyword arguments) in PyTorch's operator database.

    Of what PyTorch composes and torch_npu does not, the CPU shows only the parts: ``device`` "npu", on the simulated
    NPU, gives these overloads, and "cpu" the others.
    """
    import torch
    from torch.testing._internal import common_methods_invocations as database
    from torch.utils._python_dispatch import TorchDispatchMode

    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)

    class Trace(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._schema.name + ("." + func._schema.overload_name if func._schema.overload_name else "")
            on_npu = torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")
            composed = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
            if on_npu and composed == (device == "npu") and len(found[name]) < SAMPLES:
                found[name].append(_detached((args, kwargs or {})))
            return func(*args, **(kwargs or {}))

    lists = (
        "op_db", "foreach_unary_op_db", "foreach_binary_op_db", "foreach_pointwise_op_db", "foreach_reduce_op_db",
        "foreach_other_op_db",
    )  # fmt: skip
    for info in itertools.chain.from_iterable(getattr(database, name, ()) for name in lists):
        for dtype in (torch.float32, torch.int64, torch.bool):
            if dtype not in info.dtypes:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with torch.inference_mode(device == "npu"):
                    _trace(info, dtype, device, Trace())
            break
    return found


def _trace(info: Any, dtype: Any, device: str, mode: Any) -> None:
    import torch

    def placed(value: Any) -> Any:
        return (
            value.detach().to(device).requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
        )

    grad = device == "cpu" and dtype.is_floating_point and info.supports_autograd
    try:
        given = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=grad), 6))
    except Exception:
        return
    for sample in (one.transform(placed) for one in given):
        for function in filter(None, (info.op, info.inplace_variant)):
            try:
                with mode:
                    source = sample.input.clone() if function is info.inplace_variant else sample.input
                    result = function(source, *sample.args, **sample.kwargs)
                    first = next((t for t in _tensors(result) if t.requires_grad), None)
                    if first is not None:
                        first.sum().backward()
            except Exception:  # noqa: PERF203 - a sample that does not run tells nothing
                continue


def _tensors(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _detached(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, (list, tuple)):
        return type(value)(_detached(item) for item in value)
    return {key: _detached(item) for key, item in value.items()} if isinstance(value, dict) else value


def _varied(value: Any, dtype: Any, target: Any) -> Any:
    """The arguments on the npu device, with those tensors that have ``dtype`` in ``target``."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise TypeError("not a dense tensor")
        converted = value.to(target) if value.dtype == dtype else value
        return converted.contiguous().to("npu")  # other copies would be work for the operators that are measured
    if isinstance(value, (list, tuple)):
        return type(value)(_varied(item, dtype, target) for item in value)
    if isinstance(value, dict):
        return {key: _varied(item, dtype, target) for key, item in value.items()}
    if isinstance(value, torch.device):
        return torch.device("npu:0")
    return target if value == dtype else value


def _operator(name: str) -> Any:
    import torch

    base, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def replay(name: str, calls: list[tuple[Any, ...]], recorder: recording_cann.Recorder) -> Iterator[dict[str, Any]]:
    """For each call and dtype: what CANN was asked for, or torch_npu's own error."""
    import torch

    operator = _operator(name)
    for index, (args, kwargs) in enumerate(calls):
        first = next(_tensors([args, list(kwargs.values())]), None)
        if first is None:
            continue
        for target in TRIED:
            try:
                moved = _varied((args, kwargs), first.dtype, getattr(torch, target))
            except Exception:
                continue
            recorder.take()
            error = ""
            try:
                operator(*moved[0], **moved[1])
            except Exception as caught:
                error = str(caught)
            varies = [
                position
                for position, argument in enumerate(operator._schema.arguments)
                if any(
                    t.dtype == first.dtype
                    for t in _tensors(args[position] if position < len(args) else kwargs.get(argument.name))
                )
            ]
            called = [
                [function, [recording_cann.DTYPES.get(kind, str(kind)) for kind in kinds]]
                for function, kinds in recorder.take()
            ]
            yield {"name": name, "sample": index, "dtype": target, "varies": varies, "calls": called, "error": error}


def work(folder: Path, skipped: set[str], out: Path) -> None:
    """Measure every operator that is not in ``skipped``; one line of JSON for each answer, the name first."""
    import torch
    import torch_npu  # noqa: F401

    recorder = recording_cann.Recorder(folder)
    torch.npu.set_device(0)
    found = samples("cpu") | torch.load(folder / _COMPOSED, weights_only=False)
    with out.open("a", encoding="utf-8") as file:
        for name in sorted(found):
            if name in skipped:
                continue
            print(json.dumps({"begin": name}), file=file, flush=True)
            signal.alarm(LIMIT_S)  # ends the process, wherever it hangs
            for answer in replay(name, found[name], recorder):
                print(json.dumps(answer), file=file)
            file.flush()
    signal.alarm(0)


def compose(folder: Path) -> None:
    """Keep the samples that only the simulated NPU shows, for ``work``."""
    import torch

    torch.save(dict(samples("npu")), folder / _COMPOSED)


def _run(arguments: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """This script in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def measured(folder: Path, chip: str) -> list[dict[str, Any]]:
    """All answers for one chip. A kernel that cannot bear unwritten results ends its process; the next goes on."""
    from npuport.sim import SimOptions, environment

    variables = environment(SimOptions(chip=chip, memory_gib=32))
    variables["LD_LIBRARY_PATH"] = f"{folder}{os.pathsep}{variables['LD_LIBRARY_PATH']}"
    variables |= {"NPUPORT_SIM": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    out, skipped = folder / f"{chip}.jsonl", set[str]()
    while True:
        done = _run(["--work", str(folder), str(out), json.dumps(sorted(skipped))], variables)
        if not out.exists():
            sys.exit(f"measuring on {chip} failed:\n{done.stderr[-2000:]}")
        answers = [json.loads(line) for line in out.read_text().splitlines() if line.endswith("}")]
        begun = [answer["begin"] for answer in answers if "begin" in answer]
        if done.returncode == 0:
            return [answer for answer in answers if "begin" not in answer]
        if not begun or begun[-1] in skipped:
            sys.exit(f"measuring on {chip} failed:\n{done.stderr[-2000:]}")
        print(f"{chip}: {begun[-1]} ended its process ({done.returncode})", file=sys.stderr)
        skipped.update(begun)


def trace_composed(folder: Path) -> None:
    """Trace on the simulated NPU what ``measured`` replays of composed operators."""
    from npuport.sim import environment

    done = _run(["--compose", str(folder)], environment())
    if done.returncode:
        sys.exit(f"tracing on the simulated NPU failed:\n{done.stderr[-2000:]}")


if __name__ == "__main__":
    if sys.argv[1] == "--compose":
        compose(Path(sys.argv[2]))
    else:
        work(Path(sys.argv[2]), set(json.loads(sys.argv[4])), Path(sys.argv[3]))
