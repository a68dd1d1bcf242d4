"""Measure which names of torch.cuda exist on torch.npu, and write src/npuport/facts/data/torch_cuda_measured.csv.

    python tools/measure_torch_npu_names.py [OUT.csv]      # "-" prints the table

It imports the real torch_npu, on the simulated CANN where there is no Ascend machine, and asks the live modules.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import inspect
import io
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import on_cann

TABLE = Path(__file__).resolve().parents[1] / "src/npuport/facts/data/torch_cuda_measured.csv"
COLUMNS = (
    "name",
    "kind",
    "npu_name",
    "import_from",
    "cuda_signature",
    "npu_signature",
    "left_as_is",
    "source",
    "version",
    "certainty",
)

# Private names that public training code uses all the same (underscored names are otherwise left out).
USED_PRIVATE = {
    "torch.cuda": (
        "_CudaDeviceProperties",
        "_DeviceGuard",
        "_device_count_nvml",
        "_get_device",
        "_get_device_index",
        "_get_generator",
        "_is_in_bad_fork",
        "_lazy_call",
        "_lazy_init",
        "_maybe_exchange_device",
        "_exchange_device",
        "_parse_visible_devices",
        "_set_stream_by_id",
        "_sleep",
        "_utils",
        "_memory_viz",
        "_sanitizer",
    ),
    "torch.cuda._utils": ("_get_device_index",),
    "torch.cuda._sanitizer": ("enable_cuda_sanitizer",),
    "torch.cuda.memory": (
        "_dump_snapshot",
        "_get_current_allocator",
        "_record_memory_history",
        "_save_memory_usage",
        "_save_segment_usage",
        "_set_allocator_settings",
        "_snapshot",
    ),
}
PRIVATE_MODULES = {"torch.cuda._sanitizer", "torch.cuda._utils"}  # only the names given above are anybody's business
# Public names that live elsewhere in torch but are used through torch.cuda.
USED_FOREIGN = {"torch.cuda": ("OutOfMemoryError", "AcceleratorError", "has_half", "has_magma", "default_generators")}
# What a program would pass, for functions that cannot be called with nothing.
SAMPLE_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "torch.cuda.device": (0,),
    "torch.cuda.manual_seed": (0,),
    "torch.cuda.manual_seed_all": (0,),
    "torch.cuda.set_device": (0,),
    "torch.cuda.set_per_process_memory_fraction": (0.5,),
    "torch.cuda.set_stream": (None,),
    "torch.cuda.set_sync_debug_mode": (0,),
    "torch.cuda.stream": (None,),
    "torch.cuda.nvtx.mark": ("x",),
    "torch.cuda.nvtx.range_push": ("x",),
    "torch.cuda.nvtx.range_start": ("x",),
    "torch.cuda.random.manual_seed": (0,),
    "torch.cuda.random.manual_seed_all": (0,),
}
# Members that the base class in C++ defines; a torch built without CUDA has a hollow stand-in for it.
BASE_MEMBERS = {
    "Stream": ("cuda_stream", "device", "device_index", "device_type", "priority", "priority_range", "stream_id"),
    "Event": (
        "cuda_event",
        "device",
        "from_ipc_handle",
        "ipc_handle",
        "elapsed_time",
        "query",
        "record",
        "wait",
        "synchronize",
    ),
}


def cuda_modules() -> list[ModuleType]:
    """torch.cuda and every submodule of it that imports without a GPU."""
    import torch.cuda

    found: list[ModuleType] = [torch.cuda]
    for info in pkgutil.walk_packages(torch.cuda.__path__, "torch.cuda."):
        last = info.name.rpartition(".")[2]
        if last.startswith("_") and info.name not in USED_PRIVATE:
            continue
        found.append(importlib.import_module(info.name))
    return found


def belongs(module: ModuleType, name: str) -> bool:
    """Whether ``module.name`` is the module's own, not something it imported for itself."""
    if name in USED_PRIVATE.get(module.__name__, ()) or name in USED_FOREIGN.get(module.__name__, ()):
        return True
    if name.startswith("_") or module.__name__ in PRIVATE_MODULES:
        return False
    if name in getattr(module, "__all__", ()):
        return True
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        return value.__name__ == f"{module.__name__}.{name}"
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def cuda_names() -> Iterator[tuple[str, Any]]:
    """Dotted names under torch.cuda with their objects: modules, their own public names, members of their classes."""
    for module in cuda_modules():
        yield module.__name__, module
        listed = set(getattr(module, "__all__", ())) | set(vars(module)) | set(USED_FOREIGN.get(module.__name__, ()))
        for name in sorted(listed):
            if not hasattr(module, name) or not belongs(module, name):
                continue
            value = getattr(module, name)
            dotted = f"{module.__name__}.{name}"
            if isinstance(value, ModuleType) and value.__name__ == dotted:
                continue  # cuda_modules() has it
            yield dotted, value
            if inspect.isclass(value) and value.__module__.startswith("torch.cuda") and not is_data_type(name):
                yield from class_members(dotted, value)


def is_data_type(name: str) -> bool:
    """FloatTensor, LongStorage and their kin: their members are those of every tensor and storage."""
    return name.endswith(("Tensor", "Storage"))


def class_members(dotted: str, value: type) -> Iterator[tuple[str, Any]]:
    """Public members that the class defines itself; inherited ones of exceptions and tuples say nothing about CUDA."""
    own = {name for name in vars(value) if not name.startswith("_")}
    for name in sorted(own | set(BASE_MEMBERS.get(value.__name__, ()))):
        yield f"{dotted}.{name}", getattr(value, name, None)


def kind_of(dotted: str, value: Any) -> str:
    """module, class, function, member or value."""
    if isinstance(value, ModuleType):
        return "module"
    if inspect.isclass(value):
        return "class"
    if dotted.split(".")[-2][:1].isupper():
        return "member"
    return "function" if callable(value) else "value"


def resolve(dotted: str) -> Any:
    """The object that attribute access from ``import torch`` gives, or raises AttributeError."""
    import torch

    value: Any = torch
    for part in dotted.split(".")[1:]:
        value = getattr(value, part)
    return value


def counterpart(dotted: str, value: Any) -> tuple[str, Any] | None:
    """The name on torch.npu and its object: the same path, or the top level if torch.cuda has the object there too."""
    import torch.cuda

    candidates = [dotted.replace("torch.cuda", "torch.npu", 1)]
    last = dotted.rpartition(".")[2]
    if value is not None and getattr(torch.cuda, last, None) is value:
        candidates.append(f"torch.npu.{last}")
    for candidate in candidates:
        with contextlib.suppress(AttributeError):
            return candidate, resolve(candidate)
    return None


def import_module_of(npu_name: str) -> str:
    """The module M such that ``from M import NAME`` yields the same object as the attribute path, or "".

    ``torch.npu`` is an alias of ``torch_npu.npu`` in ``sys.modules``; its submodules are not aliased, so that importing
    ``torch.npu.amp`` runs the file again as a second module whose classes are not the ones torch_npu uses.
    """
    parent, _, last = npu_name.rpartition(".")
    module = parent if parent in ("torch", "torch.npu") else re.sub(r"^torch\.npu\b", "torch_npu.npu", parent)
    try:
        value = getattr(importlib.import_module(module), last)
    except (ImportError, AttributeError):
        return ""
    return module if value is resolve(npu_name) or value == resolve(npu_name) else ""


def signature_of(value: Any) -> str:
    """Parameter names and defaults, without annotations, which differ for no reason; "" where there is none."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.Signature(plain)))


def left_as_is(dotted: str, value: Any) -> str:
    """What the CUDA name does with torch_npu and without CUDA: "raises TypeError" or "returns None"; "" if not tried.

    Only functions of torch.cuda and classes that need no argument are called; results are told by type, and in full if
    they are None, a number or a collection.
    """
    arguments = SAMPLE_ARGUMENTS.get(dotted, ())
    if kind_of(dotted, value) not in ("function", "class") or "._" in dotted:
        return ""
    if not arguments:
        try:
            inspect.signature(value).bind()
        except (TypeError, ValueError):
            return ""
    try:
        result = value(*arguments)
    except BaseException as error:  # NVML's wrapper and assertions raise what they like
        return f"raises {type(error).__name__}"
    told = result is None or isinstance(result, bool | int | float | list | tuple | dict)
    return f"returns {result!r}" if told else f"returns {type(result).__name__}"


def measure() -> list[dict[str, str]]:
    """One row per name. Signatures are given only where they differ beyond the device's own name."""
    import torch
    import torch_npu

    assert torch.npu is torch_npu.npu, "torch_npu did not register itself as torch.npu"
    rows = []
    for dotted, value in dict(cuda_names()).items():
        row = dict.fromkeys(COLUMNS, "") | {"name": dotted, "kind": kind_of(dotted, value)}
        row |= {"left_as_is": left_as_is(dotted, value), "source": "torch_npu namespace"}
        row |= {"version": torch_npu.__version__, "certainty": "measured"}
        found = counterpart(dotted, value)
        if found is None:
            rows.append(row)
            continue
        npu_name, npu_value = found
        row |= {"npu_name": npu_name, "import_from": import_module_of(npu_name)}
        on_cuda, on_npu = signature_of(value), signature_of(npu_value)
        if callable(value) and callable(npu_value) and on_cuda.replace("cuda", "npu") != on_npu:
            row |= {"cuda_signature": on_cuda, "npu_signature": on_npu}
        rows.append(row)
    return sorted(rows, key=lambda row: row["name"])


def as_csv(rows: list[dict[str, str]]) -> str:
    """The table as text."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def main(target: str = str(TABLE)) -> None:
    """Write the table to ``target``, or print it for "-"."""
    text = as_csv(measure())
    if target == "-":
        print(text, end="")
        return
    aside = Path(target + ".new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(target)


if __name__ == "__main__":
    on_cann.ensure()
    main(*sys.argv[1:])
