"""All rules, by family. A new family is one module and one line here."""

from __future__ import annotations

from functools import cache

from npuport.rules import (
    apex,
    autocast,
    chip_dtypes,
    cuda_amp,
    cuda_hardware,
    cuda_imports,
    cuda_names,
    data_loading,
    detection,
    devices,
    distributed,
    environment,
    environment_lists,
    fusable,
    integer_devices,
    layers,
    libraries,
    library_calls,
    messages,
    npu_options,
    numerics,
    operators,
    overflow,
    own_devices,
    parallel,
    process_groups,
    profiler,
    synchronization,
    timing,
    torch_npu_names,
    version_drift,
)
from npuport.rules.base import Rule

_FAMILIES = (
    apex,
    autocast,
    chip_dtypes,
    cuda_amp,
    cuda_hardware,
    cuda_imports,
    cuda_names,
    data_loading,
    detection,
    devices,
    distributed,
    environment,
    environment_lists,
    fusable,
    integer_devices,
    layers,
    libraries,
    library_calls,
    messages,
    npu_options,
    numerics,
    operators,
    overflow,
    own_devices,
    parallel,
    process_groups,
    profiler,
    synchronization,
    timing,
    torch_npu_names,
    version_drift,
)


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule class, by code.

    Raises:
        ValueError: when two rules share a code or a name.
    """
    rules = sorted((rule for family in _FAMILIES for rule in family.RULES), key=lambda rule: rule.code)
    if len({rule.code for rule in rules}) != len(rules) or len({rule.name for rule in rules}) != len(rules):
        raise ValueError("two rules share a code or a name")
    return tuple(rules)
