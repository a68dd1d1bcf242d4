"""A libopapi.so that notes every operator of CANN that torch_npu calls, and with which dtypes, and computes nothing.

It stands on LD_LIBRARY_PATH before the stand-in's own. Results stay unwritten: nothing that such a run computes means
anything.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from aclnn_documents import Function

NAME = "libopapi.so"

# aclDataType (acl_base.h)
DTYPES = {
    0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 7: "uint16", 8: "uint32", 9: "int64",
    10: "uint64", 11: "float64", 12: "bool", 16: "complex64", 17: "complex128", 27: "bfloat16", 33: "complex32",
}  # fmt: skip

_HEAD = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { HANDLES = 1 << 16, TEXT = 1 << 16 };
typedef struct { int type; uint64_t count; const void* const* members; } Handle;
static Handle handles[HANDLES];
static unsigned next;
static char text[TEXT];
static size_t length;

static void* make(int type, uint64_t count, const void* const* members) {
    Handle* handle = &handles[next++ % HANDLES];
    *handle = (Handle){type, count, members};
    return handle;
}
static void put(const char* word) { length += snprintf(text + length, length < TEXT ? TEXT - length : 0, "%s", word); }
static void put_type(const void* tensor) {
    char number[16];
    snprintf(number, sizeof number, " %d", tensor ? ((const Handle*)tensor)->type : -1);
    put(number);
}
static void put_list(const void* list) {
    const Handle* handle = list;
    if (handle && handle->count) put_type(handle->members[0]); else put(" -1");
}
const char* npuport_calls(void) {
    if (length >= TEXT) length = TEXT - 1;
    text[length] = 0;
    length = 0;
    return text;
}
void* aclCreateTensor(const int64_t* s, uint64_t n, int type, const int64_t* t, int64_t o, int f, const int64_t* u,
                      uint64_t m, void* d) {
    return make(type, 0, NULL);
}
void* aclCreateTensorList(const void* const* members, uint64_t count) {
    const void** copy = malloc((count + 1) * sizeof *copy);
    memcpy(copy, members, count * sizeof *copy);
    return make(-2, count, copy);
}
void* aclCreateScalar(void* value, int type) { return make(type, 0, NULL); }
void* aclCreateScalarList(const void* const* members, uint64_t count) { return make(-2, 0, NULL); }
void* aclCreateIntArray(const int64_t* values, uint64_t count) { return make(-2, 0, NULL); }
void* aclCreateFloatArray(const float* values, uint64_t count) { return make(-2, 0, NULL); }
void* aclCreateBoolArray(const _Bool* values, uint64_t count) { return make(-2, 0, NULL); }
int aclDestroyTensor(void* h) { return 0; }
int aclDestroyTensorList(void* h) { return 0; }
int aclDestroyScalar(void* h) { return 0; }
int aclDestroyScalarList(void* h) { return 0; }
int aclDestroyIntArray(void* h) { return 0; }
int aclDestroyFloatArray(void* h) { return 0; }
int aclDestroyBoolArray(void* h) { return 0; }
"""


def build(folder: Path, functions: Mapping[str, Function], names: Iterable[str]) -> None:
    """Compile the library into ``folder``; ``names`` are the operators that torch_npu may look up."""
    source = folder / "recording.c"
    source.write_text("\n".join([_HEAD, *(_stub(name, functions.get(name)) for name in sorted(names))]))
    command = ["cc", "-std=gnu11", "-O1", "-w", "-fPIC", "-shared", "-o", str(folder / NAME), str(source)]
    subprocess.run(command, check=True)


def _stub(name: str, function: Function | None) -> str:
    run = f"int {name}(void* w, uint64_t n, void* e, void* s) {{ return 0; }}"
    if function is None:
        return f'int {name}GetWorkspaceSize() {{ put("{name}\\n"); return 0; }}\n{run}'
    declared, noted = [], []
    for index, parameter in enumerate(function.parameters):
        declared.append(f"{_c_type(parameter.type)} a{index}")
        if parameter.type == "aclTensor*":
            noted.append(f"put_type(a{index});")
        elif parameter.type == "aclTensorList*":
            noted.append(f"put_list(a{index});")
    body = " ".join(noted)
    return f'int {name}GetWorkspaceSize({", ".join(declared)}) {{ put("{name}"); {body} put("\\n"); return 0; }}\n{run}'


def _c_type(kind: str) -> str:
    if kind.endswith("*"):
        return "const void*"
    return {"bool": "_Bool", "aclDataType": "int", "aclFormat": "int"}.get(kind, kind)


class Recorder:
    """The library as loaded into this process."""

    def __init__(self, folder: Path) -> None:
        self._library = ctypes.CDLL(str(folder / NAME))
        self._library.npuport_calls.restype = ctypes.c_char_p

    def take(self) -> list[tuple[str, list[int]]]:
        """The calls since the last ``take``: function, and the aclDataType of each of its tensors (-1: none given)."""
        lines = self._library.npuport_calls().decode().splitlines()
        return [(words[0], [int(word) for word in words[1:]]) for words in map(str.split, lines)]
