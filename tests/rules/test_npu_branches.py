from __future__ import annotations

import pytest

from npuport.rules.npu_branches import tells_npus_apart


@pytest.mark.parametrize(
    "text",
    [
        "import torch_npu",
        "if is_npu_available(): pass",
        "x = torch.npu.current_device()",
        "device = 'npu:0'",
        "class D(Enum):\n    NPU = 1",
        "find_spec('torch_npu')",
        "# about NPUs\nd = {'npu': 1}",
        "f'npu:{i}'",
    ],
)
def test_code_that_tells_npus_apart(text: str) -> None:
    assert tells_npus_apart(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = input()",
        "# on an NPU this is slow",
        '''"""Runs on GPU, NPU and TPU."""''',
        "print('no npu support yet')",
        "unpunished = 1",
    ],
)
def test_code_that_does_not(text: str) -> None:
    assert not tells_npus_apart(text)
