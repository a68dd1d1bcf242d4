"""Steps of which only statistics were kept are compared by them, and without importing torch."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from fault_models import CASES  # noqa: E402
from faults import FAULTS, NOISES, is_right, step_of  # noqa: E402
from msprobe_dumps import forward, tensor, write_dump  # noqa: E402

from npuport.precision.dumps import read_any_step  # noqa: E402
from npuport.precision.operators.calls import Step, read_step, write_step  # noqa: E402
from npuport.precision.operators.plain_file import read_plain  # noqa: E402
from npuport.precision.operators.statistics import Statistics  # noqa: E402
from npuport.precision.operators.summing import statistics_of  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def of_statistics(step: Step, checksums: bool = False) -> Step:
    """A step as if only its statistics had been recorded."""
    refs = {ref for call in step.calls for ref in (*call.inputs, *call.outputs)}
    found = {ref: statistics_of(step.tensor(ref), with_checksum=True) for ref in refs}
    if not checksums:
        found = {ref: replace(one, checksum=None) for ref, one in found.items()}
    return Step(step.calls, {}, step.step, step.rank, step.device, found, step.names, step.modules)


@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("noise", [NOISES["1e-5"], NOISES["bf16"]])
def test_a_healthy_pair_has_no_suspect(model: str, noise: float) -> None:
    comparison = compare(*(of_statistics(step_of(model, noise, seed)) for seed in (1, 2)))
    assert comparison.suspects == ()
    assert "statistics" in str(comparison.notes[0])


NAMES = (
    "softmax 1 % noise", "one NaN", "doubled gradient", "layer norm eps", "wrong mask", "convolution in bfloat16",
    "tanh in bfloat16", "one wrong element of an image",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_the_first_suspect(name: str) -> None:
    fault = next(one for one in FAULTS if one.name == name)
    reference, candidate = step_of(fault.model, 1e-6, 1), step_of(fault.model, 1e-6, 2, fault)
    first = compare(of_statistics(reference), of_statistics(candidate)).suspects[0]
    assert is_right(fault, first.call.operator, first.call.module), (first.call, str(first.text))


def test_a_batch_in_another_order_needs_checksums() -> None:
    fault = next(one for one in FAULTS if one.name == "another batch")
    steps = step_of("gpt", 1e-6, 1), step_of("gpt", 1e-6, 2, fault)
    first = compare(*(of_statistics(step, checksums=True) for step in steps)).suspects[0]
    assert (first.call.operator, first.kind) == ("aten.embedding.default", "input")


def test_values_at_the_limit_of_a_dtype_are_no_errors() -> None:
    """Masks are filled with the largest value there is; one addition more, and it is infinite."""
    step = step_of("lstm", 0.0, 1)
    call = next(call for call in step.calls if call.operator == "aten.sigmoid_.default")
    ref = call.outputs[0]
    reference, candidate = of_statistics(step), of_statistics(step)
    reference.statistics[ref] = Statistics(3.0, -3.4028e38, -1e37, 1e39, 0, 0)
    candidate.statistics[ref] = Statistics(3.0, -2.0, 0.1, 7.0, 0, 20)
    assert compare(reference, candidate).suspects == ()


def test_a_file_without_tensors_is_read_without_torch(tmp_path: Path) -> None:
    step = of_statistics(step_of("cnn", 0.0, 1))
    path = write_step(tmp_path, step)
    assert read_plain(path) is not None
    again = read_step(path)
    assert repr((again.calls, again.statistics)) == repr((step.calls, step.statistics))  # NaN is not equal to NaN
    assert not again.has_tensors
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from npuport.cli.precision_compare import compare_folders\n"
        f"code = compare_folders(Path({str(tmp_path)!r}), Path({str(tmp_path)!r}), True)\n"
        "sys.exit(9 if 'torch' in sys.modules else code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_file_with_tensors_or_code_is_not_plain(tmp_path: Path) -> None:
    torch.save({"npuport": torch.ones(2)}, tmp_path / "a.pt")
    torch.save({"npuport": Path("x")}, tmp_path / "b.pt")
    (tmp_path / "c.pt").write_bytes(b"PK")
    assert [read_plain(tmp_path / name) for name in ("a.pt", "b.pt", "c.pt")] == [None, None, None]


def test_a_single_call_in_half_precision_that_agrees_is_no_suspect(tmp_path: Path) -> None:
    """Its rounding is larger than all that the calls in float32 show."""
    calls = {}
    for number in range(20):
        dtype = "torch.float16" if number == 9 else "torch.float32"
        outputs = [tensor(8, dtype=dtype, norm=float(number + 1))]
        calls[f"Functional.gelu.{number}.forward"] = forward([tensor(8, norm=number + 0.5)], outputs)
    step = read_any_step(write_dump(tmp_path, calls))
    assert compare(step, step).suspects == ()
