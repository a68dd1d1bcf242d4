"""What CUDA code relies on, on the real torch_npu over the simulated NPU: see probes/cuda_semantics.py."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

PROBES = Path(__file__).parent / "probes"
REFUSED = {  # what the error says; docs/run.md lists them
    "temperature": "`npu-smi info` shows it",
    "captured_graph_is_refused_or_works": "AclmdlRICaptureBegin",
}


def test_every_probe_behaves_as_on_cuda_or_is_refused_clearly(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = simulated([PROBES / "runner.py", "npuport", tmp_path / "found.json"])
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found) > 150
    failed = {name: said for name, said in found.items() if said}
    assert failed.keys() == REFUSED.keys(), failed
    for name, part in REFUSED.items():
        assert part in failed[name]
