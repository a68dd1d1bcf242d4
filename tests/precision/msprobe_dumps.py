"""Small dumps in the form that mindstudio-probe 26.2.0 writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tensor(
    *shape: int,
    dtype: str = "torch.float32",
    largest: Any = 2.0,
    smallest: Any = -2.0,
    mean: Any = 0.1,
    norm: Any = 4.0,
    **more: Any,
) -> dict[str, Any]:
    numbers = {"Max": largest, "Min": smallest, "Mean": mean, "Norm": norm}
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), **numbers, "requires_grad": True, **more}


def forward(inputs: list[Any], output: list[Any], **keywords: Any) -> dict[str, Any]:
    return {"input_args": inputs, "input_kwargs": keywords, "output": output}


def backward(inputs: list[Any], output: list[Any]) -> dict[str, Any]:
    return {"input": inputs, "output": output}


def write_dump(
    folder: Path,
    data: dict[str, Any],
    *,
    task: str = "statistics",
    level: str = "L1",
    parents: dict[str, Any] | None = None,
    stacks: dict[str, Any] | None = None,
    file: str = "dump.json",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    document = {"task": task, "level": level, "framework": "pytorch", "dump_data_dir": None, "data": data}
    path = folder / file
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")  # with NaN and Infinity, as msprobe has them
    (folder / "construct.json").write_text(json.dumps(parents or {}), encoding="utf-8")
    (folder / "stack.json").write_text(json.dumps(stacks or {}), encoding="utf-8")
    return path


def small_gpt(norm_of_gelu: float = 8.0, **gelu: Any) -> dict[str, Any]:
    """Calls of a layer, forward and backward."""
    x, y, z = tensor(4, 8, norm=5.0), tensor(4, 16, norm=7.0), tensor(4, 16, norm=norm_of_gelu, **gelu)
    weight = tensor(16, 8, norm=3.0, mean=0.01)
    return {
        "Functional.linear.0.forward": forward([x, weight, None], [y]),
        "Module.up.Linear.forward.0": {**forward([x], [y]), "parameters": {"weight": weight}},
        "Functional.gelu.0.forward": forward([y], [z], approximate={"type": "str", "value": "none"}),
        "Tensor.sum.0.forward": forward([z], [tensor(norm=1.5, mean=1.5, largest=1.5, smallest=1.5)]),
        "Functional.gelu.0.backward": backward(
            [tensor(4, 16, norm=6.0, mean=1.0)], [tensor(4, 16, norm=6.5, mean=0.9)]
        ),
        "Functional.linear.0.backward": backward([tensor(4, 16, norm=6.5, mean=0.9)], [None, tensor(16, 8, norm=9.0)]),
        "Module.up.Linear.parameters_grad": {"weight": [tensor(16, 8, norm=9.0)]},
    }


PARENTS = {
    "Functional.linear.0.forward": "Module.up.Linear.forward.0",
    "Module.up.Linear.forward.0": None,
    "Functional.linear.0.backward": "Module.up.Linear.backward.0",
}
STACKS = {
    "0": [
        ["Functional.linear.0.forward", "Functional.gelu.0.forward"],
        [
            "File /x/site-packages/torch/nn/functional.py, line 3, in linear, \n a",
            "File /p/model.py, line 12, in f, \n b",
        ],
    ]
}
