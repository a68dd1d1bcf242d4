"""What is known about Ascend: typed look-ups over the tables in data/, each entry with its source and certainty.

Importing this package loads no table and no torch; a table is read at its first look-up.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; importing it from typing would cost most of this module's time
if TYPE_CHECKING:
    from npuport.facts.accelerator import AcceleratorName, accelerator_name, all_accelerator_names
    from npuport.facts.apex_names import ApexName, apex_name
    from npuport.facts.chips import DEFAULT_CHIP, Chip, ChipFamily, all_chips, chip, chip_family
    from npuport.facts.config_checks import ConfigCheck, all_config_checks, config_check
    from npuport.facts.cuda_names import CudaName, all_torch_cuda_names, torch_cuda
    from npuport.facts.curve_criteria import CurveCriterion, all_curve_criteria
    from npuport.facts.custom_operators import (
        CustomOperator,
        OperatorSchema,
        all_custom_operators,
        custom_operator,
        operator_schemas,
    )
    from npuport.facts.deprecated_names import DeprecatedName, all_deprecated_names, deprecated_name
    from npuport.facts.detection_operators import DetectionOperator, all_detection_operators, detection_operator
    from npuport.facts.determinism import DeterminismVariable, all_determinism_variables
    from npuport.facts.dtypes import Dtype, all_dtypes, dtype
    from npuport.facts.environment_checks import EnvironmentCheck, all_environment_checks, environment_check
    from npuport.facts.errors import (
        ErrorCode,
        KnownError,
        all_error_codes,
        all_known_errors,
        codes_in,
        error_code,
        known_error,
    )
    from npuport.facts.fused_operators import FusedOperator, all_fused_operators, fused_operator
    from npuport.facts.hyperparameters import PublishedValue, published_values
    from npuport.facts.known_advice import KnownAdvice, all_known_advice
    from npuport.facts.libraries import Library, all_libraries, distribution, library
    from npuport.facts.messages import Message, all_messages, message_in
    from npuport.facts.operator_dtypes import RefusedDtypes, refused_dtypes
    from npuport.facts.operators import Operator, all_operators, operator_status
    from npuport.facts.peaks import LinkBandwidth, Peak, all_link_bandwidths, all_peaks, link_bandwidth, peak
    from npuport.facts.performance import PerformanceFact, all_performance_facts, performance_fact
    from npuport.facts.preflight_checks import PreflightCheck, all_preflight_checks, preflight_check
    from npuport.facts.python_packages import (
        PackageFault,
        all_package_faults,
        cann_python_packages,
        numpy_for,
        torchvision_for,
    )
    from npuport.facts.removed_names import RemovedName, all_removed_names, removed_name
    from npuport.facts.torch_names import TorchName, all_torch_names, torch_name
    from npuport.facts.variables import (
        AscendVariable,
        Variable,
        all_ascend_variables,
        all_variables,
        ascend_variable,
        variable,
    )
    from npuport.facts.versions import Release, all_releases, torch_npu_for

_HOMES = {
    "AcceleratorName": "accelerator",
    "ApexName": "apex_names",
    "AscendVariable": "variables",
    "Chip": "chips",
    "ChipFamily": "chips",
    "ConfigCheck": "config_checks",
    "CudaName": "cuda_names",
    "CurveCriterion": "curve_criteria",
    "CustomOperator": "custom_operators",
    "DEFAULT_CHIP": "chips",
    "DeprecatedName": "deprecated_names",
    "DetectionOperator": "detection_operators",
    "DeterminismVariable": "determinism",
    "Dtype": "dtypes",
    "EnvironmentCheck": "environment_checks",
    "ErrorCode": "errors",
    "FusedOperator": "fused_operators",
    "KnownAdvice": "known_advice",
    "KnownError": "errors",
    "Library": "libraries",
    "LinkBandwidth": "peaks",
    "Message": "messages",
    "Operator": "operators",
    "OperatorSchema": "custom_operators",
    "PackageFault": "python_packages",
    "Peak": "peaks",
    "PerformanceFact": "performance",
    "PreflightCheck": "preflight_checks",
    "PublishedValue": "hyperparameters",
    "RefusedDtypes": "operator_dtypes",
    "Release": "versions",
    "RemovedName": "removed_names",
    "TorchName": "torch_names",
    "Variable": "variables",
    "accelerator_name": "accelerator",
    "all_accelerator_names": "accelerator",
    "all_ascend_variables": "variables",
    "all_chips": "chips",
    "all_config_checks": "config_checks",
    "all_curve_criteria": "curve_criteria",
    "all_custom_operators": "custom_operators",
    "all_deprecated_names": "deprecated_names",
    "all_detection_operators": "detection_operators",
    "all_determinism_variables": "determinism",
    "all_dtypes": "dtypes",
    "all_environment_checks": "environment_checks",
    "all_error_codes": "errors",
    "all_fused_operators": "fused_operators",
    "all_known_advice": "known_advice",
    "all_known_errors": "errors",
    "all_libraries": "libraries",
    "all_link_bandwidths": "peaks",
    "all_messages": "messages",
    "all_operators": "operators",
    "all_package_faults": "python_packages",
    "all_peaks": "peaks",
    "all_performance_facts": "performance",
    "all_preflight_checks": "preflight_checks",
    "all_releases": "versions",
    "all_removed_names": "removed_names",
    "all_torch_cuda_names": "cuda_names",
    "all_torch_names": "torch_names",
    "all_variables": "variables",
    "apex_name": "apex_names",
    "ascend_variable": "variables",
    "cann_python_packages": "python_packages",
    "chip": "chips",
    "chip_family": "chips",
    "config_check": "config_checks",
    "codes_in": "errors",
    "custom_operator": "custom_operators",
    "deprecated_name": "deprecated_names",
    "detection_operator": "detection_operators",
    "distribution": "libraries",
    "dtype": "dtypes",
    "environment_check": "environment_checks",
    "error_code": "errors",
    "fused_operator": "fused_operators",
    "known_error": "errors",
    "library": "libraries",
    "link_bandwidth": "peaks",
    "message_in": "messages",
    "numpy_for": "python_packages",
    "operator_schemas": "custom_operators",
    "operator_status": "operators",
    "peak": "peaks",
    "performance_fact": "performance",
    "preflight_check": "preflight_checks",
    "published_values": "hyperparameters",
    "refused_dtypes": "operator_dtypes",
    "removed_name": "removed_names",
    "torch_cuda": "cuda_names",
    "torch_name": "torch_names",
    "torch_npu_for": "versions",
    "torchvision_for": "python_packages",
    "variable": "variables",
}

__all__ = [
    "DEFAULT_CHIP",
    "AcceleratorName",
    "ApexName",
    "AscendVariable",
    "Chip",
    "ChipFamily",
    "ConfigCheck",
    "CudaName",
    "CurveCriterion",
    "CustomOperator",
    "DeprecatedName",
    "DetectionOperator",
    "DeterminismVariable",
    "Dtype",
    "EnvironmentCheck",
    "ErrorCode",
    "FusedOperator",
    "KnownAdvice",
    "KnownError",
    "Library",
    "LinkBandwidth",
    "Message",
    "Operator",
    "OperatorSchema",
    "PackageFault",
    "Peak",
    "PerformanceFact",
    "PreflightCheck",
    "PublishedValue",
    "RefusedDtypes",
    "Release",
    "RemovedName",
    "TorchName",
    "Variable",
    "accelerator_name",
    "all_accelerator_names",
    "all_ascend_variables",
    "all_chips",
    "all_config_checks",
    "all_curve_criteria",
    "all_custom_operators",
    "all_deprecated_names",
    "all_detection_operators",
    "all_determinism_variables",
    "all_dtypes",
    "all_environment_checks",
    "all_error_codes",
    "all_fused_operators",
    "all_known_advice",
    "all_known_errors",
    "all_libraries",
    "all_link_bandwidths",
    "all_messages",
    "all_operators",
    "all_package_faults",
    "all_peaks",
    "all_performance_facts",
    "all_preflight_checks",
    "all_releases",
    "all_removed_names",
    "all_torch_cuda_names",
    "all_torch_names",
    "all_variables",
    "apex_name",
    "ascend_variable",
    "cann_python_packages",
    "chip",
    "chip_family",
    "codes_in",
    "config_check",
    "custom_operator",
    "deprecated_name",
    "detection_operator",
    "distribution",
    "dtype",
    "environment_check",
    "error_code",
    "fused_operator",
    "known_error",
    "library",
    "link_bandwidth",
    "message_in",
    "numpy_for",
    "operator_schemas",
    "operator_status",
    "peak",
    "performance_fact",
    "preflight_check",
    "published_values",
    "refused_dtypes",
    "removed_name",
    "torch_cuda",
    "torch_name",
    "torch_npu_for",
    "torchvision_for",
    "variable",
]


def __getattr__(name: str) -> object:
    """Load the module that holds ``name`` at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
