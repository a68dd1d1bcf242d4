"""Lines with names that stand for something marked: which rules see them, and at what cost."""

from __future__ import annotations

import time

from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project


def _codes_at(text: str, line: int) -> set[str]:
    source = SourceFile("case.py", FileKind.PYTHON, text)
    return {one.code for one in check_file(source, Project([source]), Settings()) if one.location.line == line}


def test_a_name_is_read_as_what_it_stands_for() -> None:
    assert "NP209" in _codes_at("import torch.cuda as tc\nn = tc.get_device_capability()", 2)
    assert "NP204" in _codes_at("from torch import cuda as c\nscaler = c.amp.GradScaler()", 2)
    assert "NP717" in _codes_at("from torchvision.ops import nms as own\nkept = own(b, s, 0.5)", 2)


def test_of_two_meanings_each_counts() -> None:
    text = "try:\n    from apex.amp import scaler as s\nexcept ImportError:\n    from torch import cuda as s\nn = s.x"
    other = text.replace("from apex.amp import scaler as s", "s = None")
    assert "NP203" in _codes_at(other, 5)
    assert _codes_at(text, 4)


def test_the_cost_grows_with_the_lines_and_no_faster() -> None:
    """A variable that is given one such thing after another stands for each of them on every line."""

    def seconds(count: int) -> float:
        lines = "".join(f"h = layer{number}(h).cuda()\n" for number in range(count))
        source = SourceFile("case.py", FileKind.PYTHON, f"import torch\n{lines}")
        start = time.process_time()
        assert len(check_file(source, Project([source]), Settings())) == count
        return time.process_time() - start

    seconds(10)
    assert min(seconds(1600) for _ in range(2)) < 10 * min(seconds(400) for _ in range(2))
