"""Every case of every check of `npuport doctor`."""

from __future__ import annotations

from environment.machine_cases import BUILDING, CANN, HARDWARE
from environment.software_cases import COMMUNICATION, PACKAGES, VARIABLES

CASES = (*HARDWARE, *CANN, *PACKAGES, *VARIABLES, *COMMUNICATION, *BUILDING)
