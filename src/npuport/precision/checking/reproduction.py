"""A call that fails as a script of its own, small enough for a bug report."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Any

import torch

import npuport
from npuport.precision.checking.calls import CallCheck, short_name
from npuport.precision.operators.calls import Step, TensorRef
from npuport.precision.operators.execution import execute
from npuport.precision.references.formulas import formula_of

_INLINE = 64  # values that stand in the script itself
_ANY_DEVICE = '"npu" if torch_npu else "cuda" if torch.cuda.is_available() else ""'
_ONLY_NPU = '"npu" if torch_npu else ""'

_SCRIPT = '''\
"""{title}

Written by npuport {version} from step {step}, rank {rank} of a run on {device}. {inputs}
Usage: python {name}.py [--device npu|cuda|cpu]; without a device what was recorded is judged. Exit code 1: it fails.
"""

import argparse
import os
import platform
from math import inf, nan  # noqa: F401
from pathlib import Path  # noqa: F401

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch loads also where CANN is missing
import torch  # noqa: E402

try:
    import torch_npu
except Exception:
    torch_npu = None

LIMITS = {limits}  # of the root mean square of the error over that of the result, by position

{values}


def call(given, device, floating):
    def dtype(one):
        return floating if floating and one.is_floating_point else one

    t = [one.to(device=device, dtype=dtype(one.dtype), copy=True) for one in given]
{call}
    return [one.cpu() for one in torch.utils._pytree.tree_leaves(found) if isinstance(one, torch.Tensor)]


parser = argparse.ArgumentParser()
parser.add_argument("--device", default={default})
device = parser.parse_args().device
print("torch", torch.__version__, "torch_npu", getattr(torch_npu, "__version__", "none"))
print("python", platform.python_version(), "judged:", f"executed on {{device}}" if device else "the recorded result")
truths = {truths}
results = call(inputs, device, None) if device else recorded
fails = not results
for position, limit in LIMITS.items():
    if position >= len(results):
        continue
    parts = [torch.view_as_real(one) if one.is_complex() else one for one in (results[position], truths[position])]
    got, truth, rounded = parts[0].double(), parts[1].double(), parts[1].to(parts[0].dtype).double()
    finite = torch.isfinite(got) & torch.isfinite(rounded)
    odd = int((torch.isfinite(got) != torch.isfinite(rounded)).sum())
    error, size = (got - truth)[finite], truth[finite].square().mean().sqrt()
    relative = float(error.square().mean().sqrt() / size) if size else 0.0
    wrong = odd > 0 or (relative > limit or not size) and not torch.equal(got[finite], rounded[finite])
    fails |= wrong
    verdict = "FAILS" if wrong else "holds"
    print(f"result {{position}}: error {{relative:.3g}} of its size, allowed {{limit:.3g}}: {{verdict}}")
    at = int((got - truth).abs().nan_to_num(inf).flatten().argmax())
    print(f"    largest at {{at}}: {{float(got.flatten()[at])!r}}, in float64 {{float(truth.flatten()[at])!r}}")
    print(f"    {{odd}} of {{got.numel()}} values are finite and should not be, or are not and should")
raise SystemExit(int(fails))
'''


def write_reproduction(folder: Path, check: CallCheck, step: Step, is_generated: bool) -> Path:
    """Write the script of a call, and its tensors beside it where they are many; the script's path.

    ``step`` has the tensors of the call. ``is_generated``: they are not those of the run.
    """
    call = check.call
    name = f"step{step.step}_rank{step.rank}_{call.index}_{short_name(call.operator).strip('_')}"
    refs = list(dict.fromkeys(call.inputs))
    tensors = {
        "inputs": [step.tensor(ref).clone() for ref in refs],
        "recorded": [] if is_generated else [step.tensor(ref).clone() for ref in call.outputs],
    }
    has_kernel = formula_of(call.operator) is None
    if not has_kernel:  # the CPU cannot compute the truth there: it goes along
        tensors["by_formula"] = [one.clone() for one in execute(call, step)]
    place = f"{call.module} " if call.module else ""
    reasons = "; ".join(str(one.text) for one in (*check.results, *check.again) if not one.holds)
    arguments = [_code(one, refs) for one in call.arguments]
    keywords = {key: _code(one, refs) for key, one in call.keywords.items()}
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / f"{name}.py"
    text = _SCRIPT.format(
        title=f"{call.operator}, {place}({call.phase}): {reasons}.".replace("\\", "/"),
        version=npuport.__version__,
        step=step.step,
        rank=step.rank,
        device=step.device,
        inputs="Inputs are random, in the recorded range." if is_generated else "Inputs are those of the run.",
        name=name,
        limits={one.position: float(f"{one.limit:.3g}") for one in (*check.again, *check.results) if not one.holds},
        values=_values(tensors, folder, name),
        call=(_plain_call if has_kernel else _any_call)(call.operator, arguments, keywords),
        default=_ANY_DEVICE if has_kernel else _ONLY_NPU,
        truths='call(inputs, "cpu", torch.float64)' if has_kernel else "by_formula  # in float64",
    )
    script.write_text(text, encoding="utf-8")
    return script


def _plain_call(operator: str, arguments: list[str], keywords: dict[str, str]) -> str:
    """The lines that call an operator that torch knows, and what it made: what it returns, or wrote where it returns
    nothing."""
    given = ", ".join([*arguments, *(f"{key}={one}" for key, one in keywords.items())])
    call = f"    result = torch.ops.{operator}({given})\n    found = "
    schema = attrgetter(operator)(torch.ops)._schema
    if schema.returns:
        return f"{call}result"
    written = [
        arguments[position] if position < len(arguments) else keywords.get(one.name, "None")
        for position, one in enumerate(schema.arguments)
        if one.alias_info is not None and one.alias_info.is_write
    ]
    return f"{call}[{', '.join(written)}]"


def _any_call(operator: str, arguments: list[str], keywords: dict[str, str]) -> str:
    """As ``_plain_call``, for an operator of which the schema may not be known here."""
    named = ", ".join(f"{key!r}: {one}" for key, one in keywords.items())
    return f"""\
    function, arguments, keywords = torch.ops.{operator}, [{", ".join(arguments)}], {{{named}}}
    result = function(*arguments, **keywords)
    every = zip(function._schema.arguments, [*arguments, *[None] * len(function._schema.arguments)])
    written = [keywords.get(a.name, one) for a, one in every if a.alias_info and a.alias_info.is_write]
    leaves = torch.utils._pytree.tree_leaves([result, written])
    found = list({{id(one): one for one in leaves}}.values())"""


def _values(tensors: dict[str, list[torch.Tensor]], folder: Path, name: str) -> str:
    """The lines that make ``inputs``, ``recorded`` and what else there is."""
    if sum(one.numel() for many in tensors.values() for one in many) <= _INLINE:
        return "\n".join(
            f"{key} = [{', '.join(f'torch.tensor({one.tolist()!r}, dtype={one.dtype})' for one in many)}]"
            for key, many in tensors.items()
        )
    torch.save(tensors, folder / f"{name}.pt")
    return f'tensors = torch.load(Path(__file__).with_name("{name}.pt"), weights_only=True)\n' + "\n".join(
        f'{key} = tensors["{key}"]' for key in tensors
    )


def _code(value: Any, refs: list[TensorRef]) -> str:
    """An argument as Python code."""
    if isinstance(value, TensorRef):
        return f"t[{refs.index(value)}]"
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        what, name = value
        if what == "dtype":
            return f"dtype(torch.{name})"
        if what == "device":
            return "torch.device(device)"
        if what == "layout":
            return "torch.strided" if "strided" in name else "torch.preserve_format"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_code(one, refs) for one in value)}]"
    return repr(value)
