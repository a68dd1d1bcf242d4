"""Two machines: what must agree in one job comes first, and what differs anyway is no difference."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from environment.machines import Faked, trained_on
from environment.variants import with_cann, with_package
from npuport.environment.compare import Difference, differences, load
from npuport.errors import UserError


def document(machine: Faked, folder: Path, name: str) -> dict[str, object]:
    (folder / name).mkdir()
    return json.loads(json.dumps(asdict(machine.environment(folder / name))))  # type: ignore[no-any-return]


def test_one_machine_agrees_with_itself(tmp_path: Path) -> None:
    first, second = document(trained_on(), tmp_path, "a"), document(trained_on(), tmp_path, "b")
    assert differences(first, second) == []


def test_two_ranks_of_one_job_agree(tmp_path: Path) -> None:
    first = document(trained_on().having(None, RANK="0", LOCAL_RANK="0"), tmp_path, "a")
    second = document(trained_on().having(None, RANK="9", LOCAL_RANK="1").running(host="node18"), tmp_path, "b")
    assert differences(first, second) == []


def test_what_must_agree_comes_first(tmp_path: Path) -> None:
    first = document(trained_on().having(None, HCCL_BUFFSIZE="200"), tmp_path, "a")
    other = with_package("numpy", "1.24.0", machine=with_cann("8.1.RC1")).having(None, HCCL_BUFFSIZE="400")
    second = document(other.running(open_files=1024), tmp_path, "b")
    found = differences(first, second)
    assert Difference("variables.HCCL_BUFFSIZE", "200", "400", True) in found
    assert Difference("packages.numpy", "1.26.4", "1.24.0", True) in found
    assert Difference("canns.0.version", "8.2.RC1", "8.1.RC1", True) in found
    assert Difference("user.open_files", "65536", "1024", False) in found
    assert [one.must_agree for one in found] == sorted((one.must_agree for one in found), reverse=True)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": "npuport-analysis/1", "environment": {}}', '{"environment": {}}']
)
def test_what_is_no_machine_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UserError, match="npuport doctor --json"):
        load(path)
    with pytest.raises(UserError, match=r"b\.json could not be read"):
        load(tmp_path / "b.json")
