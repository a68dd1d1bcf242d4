"""The first cause in logs of several ranks, made after public reports and the forms of torch_npu, torchrun and CANN."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuport.environment.first_cause import REASONS, explain_failure
from npuport.environment.troubles import read_logs
from npuport.errors import UserError
from npuport.report.language import translate

LOGS = Path(__file__).parent / "logs"

# The logs, the rank that is the cause (None: none is named), what is known of it ("": an exception of the program), and
# words of the line that is shown.
CAUSES = [
    ("address_in_use", 0, "address-in-use", "EADDRINUSE"),
    ("aicore_behind_link_timeouts", 2, "aicore-exception", "GatherV2_1f2"),
    ("asynchronous_aicore.log", 1, "aicore-exception", "507015"),
    ("bfloat16_on_910a.log", None, "dtype-not-supported", "DT_BFLOAT16"),
    ("bus_error.log", 2, "shared-memory", "Bus error"),
    ("hccl_port_taken.log", 0, "hccl-port-taken", "specific port[60000]"),
    ("inconsistent_arguments.log", 1, "collectives-differ", "EI0005"),
    ("key_error_then_notify.log", 2, "", "KeyError: 'zebra'"),
    ("killed_by_kernel.log", 3, "host-memory", "exitcode  : -9"),
    ("mixed_devices.log", None, "mixed-devices", "same device"),
    ("no_kernels_package.log", None, "operator-binary-missing", "aclnnArange"),
    ("not_contiguous.log", 0, "not-contiguous", "contiguous"),
    ("out_of_memory", 5, "out-of-memory", "2.00 GiB"),
    ("overflow_forever.log", 0, "loss-scale-exhausted", "Minimum loss scale"),
    ("rank0_import_error.log", 0, "", "flash_attn"),
    ("roce_after_exception", 1, "", "bad sample"),
    ("segfault.log", 1, "native-crash", "-11"),
    ("set_compile_option.log", 0, "set-compile-option-failed", "AclSetCompileopt"),
    ("set_env_not_sourced.log", None, "cann-libraries-not-found", "libhccl.so"),
    ("versions_differ.log", 8, "hccl-versions-differ", "8.2.RC1"),
]

# The logs in which every rank only waits, and the first rank to look at.
WAITING = [
    ("agents_missing.log", 2),
    ("another_collective.log", 1),
    ("heartbeat_lost.log", 1),
    ("silent_rank.log", 2),
    ("stuck.log", 3),
]


@pytest.mark.parametrize(("log", "rank", "known", "words"), CAUSES, ids=[case[0] for case in CAUSES])
def test_the_first_cause_is_found(log: str, rank: int | None, known: str, words: str) -> None:
    first = explain_failure(read_logs([LOGS / log])).first
    assert first is not None
    assert first.rank == rank
    assert (first.known.name if first.known is not None else "") == known
    assert words in first.text


@pytest.mark.parametrize(("log", "rank"), WAITING, ids=[case[0] for case in WAITING])
def test_where_all_wait_the_rank_waited_for_is_named(log: str, rank: int) -> None:
    diagnosis = explain_failure(read_logs([LOGS / log]))
    assert diagnosis.first is None
    assert diagnosis.suspects[0].rank == rank


def test_every_log_is_looked_at() -> None:
    cases = {case[0] for case in CAUSES} | {case[0] for case in WAITING} | {"clean.log"}
    assert cases == {path.name for path in LOGS.iterdir()}


def test_the_user_s_own_line_is_shown_not_the_library_s() -> None:
    first = explain_failure(read_logs([LOGS / "bus_error.log"])).first
    assert first is not None
    assert str(first.frame) == "/home/me/train.py:55"


def test_a_log_without_errors_has_no_cause() -> None:
    diagnosis = explain_failure(read_logs([LOGS / "clean.log"]))
    assert diagnosis.first is None
    assert diagnosis.by_rank == {}


def test_codes_that_nobody_names_are_listed() -> None:
    assert explain_failure(read_logs([LOGS / "set_compile_option.log"])).unknown_codes == ("EE8888",)


def test_files_given_one_by_one_are_one_job() -> None:
    files = sorted((LOGS / "out_of_memory").rglob("*.log"))
    first = explain_failure(read_logs(files)).first
    assert first is not None
    assert first.rank == 5


def test_a_log_that_is_no_text_is_read_nevertheless(tmp_path: Path) -> None:
    log = tmp_path / "rank_1.log"
    log.write_bytes(b"\xff\xfe\x00 step 1\r\n\x1b[31mKeyError: 'a'\x1b[0m\n")
    first = explain_failure(read_logs([log])).first
    assert first is not None
    assert (first.rank, first.text) == (1, "KeyError: 'a'")


@pytest.mark.parametrize("make", [lambda path: path / "none.log", lambda path: path])
def test_a_path_without_logs_is_one_clear_error(tmp_path: Path, make: object) -> None:
    assert callable(make)
    with pytest.raises(UserError, match=str(tmp_path)):
        read_logs([make(tmp_path)])


@pytest.mark.parametrize("reason", REASONS)
def test_reasons_speak_chinese(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    assert translate(reason, call="a", usual="b", ranks="1") != reason.format(call="a", usual="b", ranks="1")
