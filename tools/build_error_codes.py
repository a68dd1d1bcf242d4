"""Rebuild src/npuport/facts/data/error_codes.csv: the codes of CANN's errors and the names CANN gives them.

    python tools/build_error_codes.py --runtime CHECKOUT --ge CHECKOUT --opbase CHECKOUT [--torch-npu FOLDER]

The checkouts are CANN's: src/dfx/error_manager/error_code.json of its runtime lists the codes such as EI0006,
base/common/error_registry of ge those of ATC and GE such as E10009, include/nnopbase/opdev/op_errno.h of opbase those
of aclnn calls. The other six-digit codes are read from CANN's headers
as the torch_npu wheel ships them (by default those of the installed torch_npu). Codes and names are taken, no texts.
"""

from __future__ import annotations

import argparse
import csv
import importlib.metadata
import json
import re
import sys
from pathlib import Path

TABLE = Path(__file__).parent.parent / "src/npuport/facts/data/error_codes.csv"
HEADERS = ("acl/acl_base_rt.h", "acl/error_codes/rt_error_codes.h", "acl/error_codes/ge_error_codes.h")
_DEFINITION = re.compile(r"\b(ACL_ERROR_\w+|ACLNN_ERR_\w+)\s*=?\s*(\d{6})U?\b")
_RAW_STRING = re.compile(r'R"\((\s*\{.*?)\)"', re.DOTALL)
ONLY_IN_GUIDES = {"EI0019": "Communication_Error_Bind_IP_Port"}
"""Codes that CANN's list lacks and its fault guide for HCCL describes."""


def numeric_codes(header: Path) -> dict[str, str]:
    """The six-digit codes of a header of CANN's, by code; of two names for one code the latter, which corrects it."""
    return {code: name for name, code in _DEFINITION.findall(header.read_text(encoding="utf-8"))}


def lettered_codes(text: str) -> dict[str, str]:
    """The titles of the codes in a list of CANN's, by code; "" where the list has none."""
    listed = json.loads(text)
    return {entry["ErrCode"]: entry.get("errTitle") or "" for entry in listed["error_info_list"]}


def codes_of_ge(checkout: Path) -> dict[str, str]:
    """The titles of the codes that GE registers: its lists are JSON within C++ sources."""
    codes: dict[str, str] = {}
    for path in sorted((checkout / "base/common/error_registry").glob("*.cc")):
        for text in _RAW_STRING.findall(path.read_text(encoding="utf-8")):
            codes |= lettered_codes(text)
    return codes


def installed_headers() -> Path:
    """Where the installed torch_npu keeps CANN's headers; it is not imported."""
    return Path(str(importlib.metadata.distribution("torch-npu").locate_file("torch_npu"))) / "include"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--ge", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--opbase", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--torch-npu", type=Path, metavar="FOLDER", help="the include folder of a torch_npu")
    parser.add_argument("--version", default="", help="of that torch_npu; known for the installed one")
    arguments = parser.parse_args()
    include = arguments.torch_npu or installed_headers()
    version = arguments.version or importlib.metadata.version("torch-npu")
    rows = [
        (code, name, f"{Path(header).name} in torch_npu", version, "documented")
        for header in HEADERS
        for code, name in numeric_codes(include / header).items()
    ]
    listed = arguments.runtime / "src/dfx/error_manager/error_code.json"
    of_cann = [
        (lettered_codes(listed.read_text(encoding="utf-8")).items(), "CANN runtime, error_code.json"),
        (codes_of_ge(arguments.ge).items(), "CANN ge, error_registry"),
        (numeric_codes(arguments.opbase / "include/nnopbase/opdev/op_errno.h").items(), "CANN opbase, op_errno.h"),
        (ONLY_IN_GUIDES.items(), "CANN HCCL fault guide"),
    ]
    rows += [(code, name, source, "August 2026", "documented") for codes, source in of_cann for code, name in codes]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("code", "name", "source", "version", "certainty"))
        writer.writerows(sorted(rows))
    print(f"{len(rows)} codes written to {TABLE}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
