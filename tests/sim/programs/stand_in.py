"""The stand-in's C functions, called as torch_npu calls them, without torch."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import checks

LIBRARY = ctypes.CDLL("libascendcl.so", mode=ctypes.RTLD_GLOBAL)
OPERATORS = ctypes.CDLL("libopapi.so")
LIBRARY.aclGetRecentErrMsg.restype = ctypes.c_char_p
for creator in ("aclCreateTensor", "aclCreateIntArray", "aclCreateScalar"):
    getattr(LIBRARY, creator).restype = ctypes.c_void_p
GIB = 1 << 30


def message() -> str:
    return str(LIBRARY.aclGetRecentErrMsg().decode())


def memory() -> tuple[int, int]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert LIBRARY.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value, total.value


def check_memory_is_counted() -> None:
    assert LIBRARY.aclrtSetDevice(0) == 0
    free, total = memory()
    assert total == 64 * GIB
    pointer = ctypes.c_void_p()
    assert LIBRARY.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(GIB), 0) == 0
    assert pointer.value % 512 == 0 and memory()[0] == free - GIB
    assert LIBRARY.aclrtMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64 * GIB), 0) == 207001
    assert "more were asked for" in message() and message() == ""  # reading the text clears it
    assert LIBRARY.aclrtFree(pointer) == 0 and memory()[0] == free
    assert LIBRARY.aclrtFree(pointer) == 207002


def check_devices_belong_to_threads() -> None:
    seen: list[int] = []

    def other() -> None:
        device = ctypes.c_int()
        seen.append(LIBRARY.aclrtGetDevice(ctypes.byref(device)))
        LIBRARY.aclrtSetDevice(1)
        LIBRARY.aclrtGetDevice(ctypes.byref(device))
        seen.append(device.value)

    LIBRARY.aclrtSetDevice(0)
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    device = ctypes.c_int()
    LIBRARY.aclrtGetDevice(ctypes.byref(device))
    assert seen == [107002, 1] and device.value == 0
    assert LIBRARY.aclrtSetDevice(7) == 107001 and "invalid device 7" in message()


def check_pointers_are_known() -> None:
    LIBRARY.aclrtSetDevice(1)
    pointer, attributes = ctypes.c_void_p(), (ctypes.c_uint32 * 7)()
    LIBRARY.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(4096), 0)
    LIBRARY.aclrtPointerGetAttributes(ctypes.c_void_p(pointer.value + 100), attributes)
    assert (attributes[0], attributes[1]) == (1, 1)  # device 1
    LIBRARY.aclrtFree(pointer)
    LIBRARY.aclrtPointerGetAttributes(pointer, attributes)
    assert attributes[1] == 2  # unknown


def check_copies_stay_within_their_room() -> None:
    source, target = ctypes.create_string_buffer(b"abcdef", 6), ctypes.create_string_buffer(4)
    assert LIBRARY.aclrtMemcpy(target, ctypes.c_size_t(4), source, ctypes.c_size_t(6), 0) == 107000
    assert LIBRARY.aclrtMemcpy(target, ctypes.c_size_t(4), source, ctypes.c_size_t(4), 0) == 0 and target.raw == b"abcd"


def check_events_measure_the_host_clock() -> None:
    events = [ctypes.c_void_p() for _ in range(2)]
    for event in events:
        LIBRARY.aclrtCreateEventWithFlag(ctypes.byref(event), 0)
    elapsed = ctypes.c_float()
    assert LIBRARY.aclrtEventElapsedTime(ctypes.byref(elapsed), *events) == 107006
    LIBRARY.aclrtRecordEvent(events[0], None)
    time.sleep(0.01)
    LIBRARY.aclrtRecordEvent(events[1], None)
    assert LIBRARY.aclrtEventElapsedTime(ctypes.byref(elapsed), *events) == 0 and elapsed.value >= 10


def check_functions_that_are_not_simulated_fail_by_name() -> None:
    assert LIBRARY.rtKernelLaunch() != 0 and "rtKernelLaunch" in message()
    assert (
        LIBRARY.aclopCompileAndExecute(b"Transpose") != 0
        and message() == "npuport simulated NPU has no reference for Transpose"
    )
    assert (
        OPERATORS.aclnnAddGetWorkspaceSize() != 0 and message() == "npuport simulated NPU has no reference for aclnnAdd"
    )
    checks.raises(AttributeError, "aclrtNoSuchFunction", lambda: LIBRARY.aclrtNoSuchFunction)


def int64s(*values: int) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


def check_padding_reads_strides() -> None:
    data, out = (ctypes.c_float * 6)(*range(6)), (ctypes.c_float * 12)(*[9] * 12)
    kind = 0  # ACL_FLOAT
    transposed = LIBRARY.aclCreateTensor(
        int64s(3, 2), ctypes.c_uint64(2), kind, int64s(1, 3), ctypes.c_int64(0), 2, None, ctypes.c_uint64(0), data
    )
    target = LIBRARY.aclCreateTensor(
        int64s(3, 4), ctypes.c_uint64(2), kind, int64s(4, 1), ctypes.c_int64(0), 2, None, ctypes.c_uint64(0), out
    )
    pads = LIBRARY.aclCreateIntArray(int64s(1, 1), ctypes.c_uint64(2))
    value = LIBRARY.aclCreateScalar(ctypes.byref(ctypes.c_float(7)), kind)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    arguments = [ctypes.c_void_p(handle) for handle in (transposed, pads, value, target)]
    assert LIBRARY.aclnnConstantPadNdGetWorkspaceSize(*arguments, ctypes.byref(size), ctypes.byref(executor)) == 0
    assert LIBRARY.aclnnConstantPadNd(None, ctypes.c_uint64(0), executor, None) == 0
    assert list(out) == [7, 0, 3, 7, 7, 1, 4, 7, 7, 2, 5, 7]


if __name__ == "__main__":
    checks.run(globals())
