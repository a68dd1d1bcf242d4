"""HCCL of the stand-in, called as torch_npu calls it: what waits, what fails, what is left behind. Without torch."""

from __future__ import annotations

import ctypes
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checks

HCCL, ACL = ctypes.CDLL("libhccl.so"), ctypes.CDLL("libascendcl.so")
ACL.aclGetRecentErrMsg.restype = ctypes.c_char_p
FLOAT, SUM = 4, 0  # HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM
TASK_TIMEOUT, TASK_EXCEPTION = 507048, 507049


def message() -> str:
    return ACL.aclGetRecentErrMsg().decode()


def succeed(code: int) -> None:
    assert code == 0, (code, message())


def floats(*values: float) -> Any:
    return (ctypes.c_float * len(values))(*values)


def stream() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    succeed(ACL.aclrtCreateStream(ctypes.byref(made)))
    return made


def event() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    succeed(ACL.aclrtCreateEventWithFlag(ctypes.byref(made), 0))
    return made


def is_complete(mark: ctypes.c_void_p) -> bool:
    status = ctypes.c_int()
    succeed(ACL.aclrtQueryEventStatus(mark, ctypes.byref(status)))
    return status.value == 1


class Rank:
    """A communicator with a stream to use it in."""

    def __init__(self, comm: ctypes.c_void_p) -> None:
        self.comm, self.stream = comm, stream()

    def all_reduce(self, values: Any) -> int:
        return HCCL.HcclAllReduce(values, values, ctypes.c_uint64(len(values)), FLOAT, SUM, self.comm, self.stream)

    def send(self, values: Any, to: int) -> int:
        return HCCL.HcclSend(values, ctypes.c_uint64(len(values)), FLOAT, to, self.comm, self.stream)

    def receive(self, values: Any, source: int) -> int:
        return HCCL.HcclRecv(values, ctypes.c_uint64(len(values)), FLOAT, source, self.comm, self.stream)

    def synchronize(self) -> int:
        return ACL.aclrtSynchronizeStream(self.stream)

    def leave(self) -> None:
        succeed(HCCL.HcclCommDestroy(self.comm))


def ranks_of_this_process(count: int = 2) -> list[Rank]:
    comms = (ctypes.c_void_p * count)()
    succeed(HCCL.HcclCommInitAll(count, (ctypes.c_int32 * count)(*[rank % 2 for rank in range(count)]), comms))
    return [Rank(ctypes.c_void_p(comm)) for comm in comms]


def root_info() -> Any:
    info = ctypes.create_string_buffer(4108)
    succeed(HCCL.HcclGetRootInfo(info))
    return info


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Call all in threads of their own: joining waits for the others."""
    results: list[Any] = [None] * len(calls)

    def store(index: int, call: Callable[[], Any]) -> None:
        results[index] = call()

    threads = [threading.Thread(target=store, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return results


def shared_files() -> int:
    return sum("npuport-hccl" in str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())


def check_one_thread_drives_several_ranks() -> None:
    ranks = ranks_of_this_process(3)
    data = [floats(rank, 10 * rank) for rank in range(3)]
    for rank, values in zip(ranks, data, strict=True):
        succeed(rank.all_reduce(values))
    for rank, values in zip(ranks, data, strict=True):
        succeed(rank.synchronize())
        assert list(values) == [3, 30]
        rank.leave()
    assert shared_files() == 0


def check_events_and_copies_wait_for_the_call_before_them() -> None:
    first, second = ranks_of_this_process()
    ours, theirs, copy = floats(1, 2), floats(3, 4), floats(0, 0)
    done, follower = event(), stream()
    succeed(first.all_reduce(ours))
    succeed(ACL.aclrtRecordEvent(done, first.stream))
    succeed(ACL.aclrtStreamWaitEvent(follower, done))
    succeed(ACL.aclrtMemcpyAsync(copy, ctypes.c_size_t(8), ours, ctypes.c_size_t(8), 3, follower))
    time.sleep(0.05)
    assert not is_complete(done) and list(copy) == [0, 0]
    assert ACL.aclrtSynchronizeStreamWithTimeout(follower, 20) == 507046
    succeed(second.all_reduce(theirs))
    succeed(ACL.aclrtSynchronizeStream(follower))
    assert is_complete(done) and list(copy) == [4, 6]
    first.leave(), second.leave()


def check_calls_of_a_communicator_keep_their_order_over_streams() -> None:
    first, second = ranks_of_this_process()
    other = Rank(first.comm)
    one, two = floats(1), floats(2)
    succeed(first.all_reduce(one))
    succeed(other.all_reduce(two))
    results = [floats(10), floats(20)]
    for values in results:
        succeed(second.all_reduce(values))
    succeed(first.synchronize() or other.synchronize() or second.synchronize())
    assert (one[0], two[0], results[0][0], results[1][0]) == (11, 22, 11, 22)
    first.leave(), second.leave()


def check_a_group_sends_before_it_receives() -> None:
    ranks = ranks_of_this_process()
    sent, received = [floats(5), floats(6)], [floats(0), floats(0)]
    for number, rank in enumerate(ranks):
        succeed(HCCL.HcclGroupStart())
        succeed(rank.receive(received[number], 1 - number))
        succeed(rank.send(sent[number], 1 - number))
        succeed(HCCL.HcclGroupEnd())
    for rank in ranks:
        succeed(rank.synchronize())
        rank.leave()
    assert [values[0] for values in received] == [6, 5]


def check_what_follows_a_call_of_a_group_waits_for_it() -> None:
    first, second = ranks_of_this_process()
    ours, theirs, done = floats(1), floats(2), event()
    succeed(HCCL.HcclGroupStart())
    succeed(first.all_reduce(ours))
    succeed(ACL.aclrtRecordEvent(done, first.stream))
    succeed(second.all_reduce(theirs))
    time.sleep(0.05)
    assert not is_complete(done) and (ours[0], theirs[0]) == (1, 2)
    assert ACL.npuport_settle(first.stream) == 0  # who has to end the group must not wait for it
    succeed(HCCL.HcclGroupEnd())
    succeed(ACL.aclrtSynchronizeEvent(done))
    assert ours[0] == 3
    succeed(second.synchronize())
    first.leave(), second.leave()


def check_many_messages_keep_their_order() -> None:
    first, second = ranks_of_this_process()
    sent = [floats(*[number] * (1 + 700 * (number % 3))) for number in range(200)]
    received = [floats(*[0] * len(values)) for values in sent]
    for values in sent:
        succeed(first.send(values, 1))
    for values in received:
        succeed(second.receive(values, 0))
    succeed(first.synchronize() or second.synchronize())
    assert all(list(got) == list(values) for got, values in zip(received, sent, strict=True))
    first.leave(), second.leave()


def check_ranks_that_disagree_are_told() -> None:
    first, second = ranks_of_this_process()
    values = floats(1, 2)
    succeed(first.all_reduce(values))
    succeed(HCCL.HcclBroadcast(values, ctypes.c_uint64(1), FLOAT, 0, second.comm, second.stream))
    for rank in (first, second):
        assert rank.synchronize() == TASK_EXCEPTION
        text = message()
        assert "EI0005" in text and "HcclAllReduce (count 2" in text and "HcclBroadcast (count 1" in text, text
        error = ctypes.c_int()
        succeed(HCCL.HcclGetCommAsyncError(rank.comm, ctypes.byref(error)))
        assert error.value == 1 and rank.all_reduce(values) == 1  # HCCL_E_PARA, and it stays
        succeed(rank.synchronize())  # told once
    first.leave(), second.leave()


def check_a_message_of_another_length_is_an_error() -> None:
    first, second = ranks_of_this_process()
    sent, received = floats(1, 2), floats(0)
    succeed(first.send(sent, 1))
    succeed(second.receive(received, 0))
    assert second.synchronize() == TASK_EXCEPTION
    assert "rank 0 sent 8 bytes and rank 1 expects 4" in message()
    first.leave(), second.leave()


def check_a_rank_that_died_is_named() -> None:
    info = root_info()
    child = os.fork()
    if child == 0:
        succeed(HCCL.HcclCommInitRootInfo(2, info, 1, ctypes.byref(ctypes.c_void_p())))
        os._exit(0)
    comm = ctypes.c_void_p()
    succeed(HCCL.HcclCommInitRootInfo(2, info, 0, ctypes.byref(comm)))
    rank, values, begin = Rank(comm), floats(1), time.monotonic()
    succeed(rank.all_reduce(values))
    assert rank.synchronize() == TASK_EXCEPTION  # though nobody has fetched the dead process yet
    assert f"rank 1 (process {child}) has ended" in message() and time.monotonic() - begin < 15
    os.waitpid(child, 0)
    rank.leave()
    assert shared_files() == 0


def check_waiting_for_a_rank_that_never_comes_ends() -> None:
    os.environ["HCCL_CONNECT_TIMEOUT"] = "1"
    assert HCCL.HcclCommInitRootInfo(2, root_info(), 0, ctypes.byref(ctypes.c_void_p())) == 9  # HCCL_E_TIMEOUT
    assert "within 1 s" in message() and shared_files() == 0
    del os.environ["HCCL_CONNECT_TIMEOUT"]


def check_a_call_that_nobody_answers_ends() -> None:
    os.environ["HCCL_EXEC_TIMEOUT"] = "1"
    first, second = ranks_of_this_process()
    del os.environ["HCCL_EXEC_TIMEOUT"]
    values = floats(1)
    succeed(first.all_reduce(values))
    assert first.synchronize() == TASK_TIMEOUT
    assert re.match("EI0002: .* waiting for the other ranks: no answer within 1 s", message())
    first.leave(), second.leave()


def check_communicators_of_some_ranks() -> None:
    def part(rank: Rank, number: int, turn: int) -> Rank:
        comm, members = ctypes.c_void_p(), (ctypes.c_uint32 * 2)(0, 2)
        code = HCCL.HcclCreateSubCommConfig(
            ctypes.byref(rank.comm), 2, members, ctypes.c_uint64(turn % 2), number, None, ctypes.byref(comm)
        )
        succeed(code)
        return Rank(comm)

    ranks = ranks_of_this_process(3)
    for turn in range(4):  # each id twice
        made = at_once(lambda t=turn: part(ranks[0], 0, t), lambda t=turn: part(ranks[2], 1, t))
        data = [floats(1), floats(2)]
        for rank, values in zip(made, data, strict=True):
            succeed(rank.all_reduce(values))
        for rank, values in zip(made, data, strict=True):
            succeed(rank.synchronize())
            assert values[0] == 3
            rank.leave()
    for rank in ranks:
        rank.leave()
    assert shared_files() == 0


def check_a_rank_table_joins_ranks() -> None:
    with tempfile.TemporaryDirectory() as directory:
        os.environ["NPUPORT_SIM_RUN"] = directory
        table = Path(directory, "table.json")
        devices = [{"device_id": str(rank), "rank_id": str(rank)} for rank in range(2)]
        table.write_text(json.dumps({"version": "1.0", "server_list": [{"device": devices}]}))

        def join(number: int) -> Rank:
            comm = ctypes.c_void_p()
            succeed(HCCL.HcclCommInitClusterInfo(os.fsencode(table), number, ctypes.byref(comm)))
            return Rank(comm)

        ranks = at_once(lambda: join(0), lambda: join(1))
        size = ctypes.c_uint32()
        succeed(HCCL.HcclGetRankSize(ranks[1].comm, ctypes.byref(size)))
        assert size.value == 2 and list(Path(directory).iterdir()) == [table]
        for rank in ranks:
            rank.leave()
        assert HCCL.HcclCommInitClusterInfo(b"/nowhere.json", 0, ctypes.byref(ctypes.c_void_p())) == 10
        assert "EI0004" in message()


def check_bad_arguments_are_refused_at_the_call() -> None:
    (rank,) = ranks_of_this_process(1)
    values, count = floats(1), ctypes.c_uint64(1)
    assert HCCL.HcclBroadcast(values, count, FLOAT, 3, rank.comm, rank.stream) == 1  # HCCL_E_PARA
    assert "rank 3 of 1" in message()
    assert HCCL.HcclAllReduce(values, values, count, 99, SUM, rank.comm, rank.stream) == 5  # HCCL_E_NOT_SUPPORT
    assert HCCL.HcclAllReduce(values, values, count, FLOAT, 9, rank.comm, rank.stream) == 5
    assert HCCL.HcclBarrier(None, rank.stream) == 2  # HCCL_E_PTR
    rank.leave()
    assert HCCL.HcclCommDestroy(rank.comm) == 1 and "not known" in message()


def check_what_the_chip_does_not_reduce() -> None:
    ranks, half = ranks_of_this_process(), (ctypes.c_uint16 * 1)(0x4000)  # 2 in bfloat16
    arguments = (half, half, ctypes.c_uint64(1), 11, 1)  # HCCL_DATA_TYPE_BFP16, HCCL_REDUCE_PROD
    os.environ["NPUPORT_SIM_STRICT"] = "1"
    assert HCCL.HcclAllReduce(*arguments, ranks[0].comm, ranks[0].stream) == 5  # HCCL_E_NOT_SUPPORT
    assert "EI0003: HcclAllReduce on Ascend910B3 does not take bfloat16 with prod" in message()
    os.environ["NPUPORT_SIM_STRICT"] = "0"
    for rank in ranks:
        succeed(HCCL.HcclAllReduce(*arguments, rank.comm, rank.stream))
    for rank in ranks:
        succeed(rank.synchronize())
        rank.leave()


if __name__ == "__main__":
    checks.run(globals())
