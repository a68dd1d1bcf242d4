"""Put CPU kernels behind the npu device: which operators get one is read from the running dispatcher."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from npuport.sim import build
from npuport.sim.requirements import Installation

# torch_npu's own kernels of these manage device memory, and what they refuse (memory formats) a real NPU refuses too.
_KEPT = frozenset(
    [
        "empty.memory_format",
        "empty_strided",
        "empty_like",
        "new_empty_strided",
        "as_strided",
        "as_strided_",
        "view",
        "_reshape_alias",
        "set_",
        "set_.source_Storage",
        "set_.source_Storage_storage_offset",
        "set_.source_Tensor",
        "resize_",
        "resize_as_",
        "is_pinned",
        "_pin_memory",
        "record_stream",
        "is_set_to",
        "_lazy_clone",
        "flatten_dense_tensors",
        "_to_copy",
        "contiguous",
        # Memory formats: torch_npu keeps them, and the stand-in's TransData leaves the elements in order.
        "npu::_npu_format_cast",
        "npu::_npu_format_cast.input_dtype",
        "npu::npu_format_cast",
        "npu::npu_format_cast.Tensor",
        "npu::npu_format_cast_",
        "npu::npu_format_cast_.acl_format",
    ]
)

# Operators that take tensors of the host, or of another device, beside tensors of the device.
_MIXING = frozenset(
    [
        "copy_",
        "_copy_from",
        "_copy_from_and_resize",
        "index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "_unsafe_index",
        "_unsafe_index_put",
        "tensor_split",
        "_foreach_copy_",
        "_foreach_copy",
    ]
)

# PyTorch composes these from several kernels, and each rounds; the device has one, which rounds half precision once.
_FUSED = ("binary_cross_entropy_with_logits", "soft_margin_loss", "soft_margin_loss_backward")

# The device takes int32 here, PyTorch's CPU kernels want int64 (measured on devices by op_plugin's own tests,
# test/test_base_ops/test_nllloss.py, test_nllloss2d.py and test_multilabel_margin_loss.py).
_INT32_INDICES = (
    "multilabel_margin_loss_forward target",
    "nll_loss_backward target",
    "nll_loss_forward target",
    "nll_loss2d_backward target",
    "nll_loss2d_forward target",
)

# PyTorch's compositions for packed sequences: torch_npu's keep the padding in the data, and lengths stay on the host.
_PACKING = {"_pack_padded_sequence": "CompositeExplicitAutograd", "_pad_packed_sequence": "CompositeImplicitAutograd"}

# What torch_npu composes for its autograd key out of calls to CANN, past the dispatcher: PyTorch's compositions serve.
_PAST_THE_DISPATCHER = (
    "affine_grid_generator_backward",
    "conv_tbc_backward",
    "fill_diagonal_",
    "max.out",
    "min.out",
    "nanmean.out",
    "slogdet",
)

_LIBRARY = "libnpuport_sim.so"
_LIBRARY_VARIABLE = "NPUPORT_SIM_KERNELS"


def ensure(installation: Installation) -> Path:
    """The compiled kernels (one shared library), compiled on first use."""

    def compile_kernels(target: Path) -> None:
        sources = sorted((build.NATIVE / "kernels").glob("*.cpp"))
        libraries: list[str | Path] = ["-L", installation.torch_directory / "lib", "-lc10", "-ltorch_cpu"]
        libraries += ["-L", installation.torch_npu_directory / "lib", "-ltorch_npu"]
        build.compile_with(
            [installation.cxx_compiler, *_flags(installation), "-o", target / _LIBRARY, *sources, *libraries]
        )

    return build.once(_name(installation), compile_kernels) / _LIBRARY


def is_built(installation: Installation) -> bool:
    """Whether ``ensure`` would return at once."""
    return (build.cache_directory() / _name(installation)).is_dir()


@functools.cache
def _name(installation: Installation) -> str:
    sources = list((build.NATIVE / "kernels").iterdir())
    versions = (installation.torch, installation.torch_npu)
    facts = (*versions, build.compiler_identity(installation.cxx_compiler), *_flags(installation))
    return f"kernels-{build.key_of(sources, *facts)}"


def _flags(installation: Installation) -> list[str]:
    include = installation.torch_directory / "include"
    standard = "c++20" if _release(installation.torch) >= (2, 12) else "c++17"
    new_abi = int(_has_new_abi(installation.torch_directory / "lib" / "libc10.so"))
    return [
        f"-std={standard}", "-O2", "-fPIC", "-shared", "-w", "-fvisibility=hidden",
        f"-D_GLIBCXX_USE_CXX11_ABI={new_abi}", f"-I{include}", f"-I{include / 'torch' / 'csrc' / 'api' / 'include'}",
        f"-I{installation.torch_npu_directory / 'include'}",
    ]  # fmt: skip


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _has_new_abi(library: Path) -> bool:
    return b"__cxx11" in library.read_bytes()


def load_library(installation: Installation | None = None) -> None:
    """Load the compiled kernels into this process as ``torch.ops.npuport_sim``."""
    import torch

    known = os.environ.get(_LIBRARY_VARIABLE)
    if known is None:
        if installation is None:
            from npuport.sim.requirements import check

            installation = check()
        known = os.fspath(ensure(installation))
    torch.ops.load_library(known)


def registered_by_torch_npu(key: str = "PrivateUse1") -> list[str]:
    """Every aten operator with a kernel for dispatch key ``key``, as ``aten::name.overload``."""
    import torch

    return sorted(
        name for name in torch._C._dispatch_get_registrations_for_dispatch_key(key) if name.startswith("aten::")
    )


def _has_kernel(name: str, *keys: str) -> bool:
    import torch

    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)


def _has_cpu_kernel(name: str) -> bool:
    return _has_kernel(
        name, "CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"
    )


def install() -> None:
    """Register the kernels.

    An operator gets PyTorch's CPU kernel, or, computed on the CPU, the composition that PyTorch has for it. What
    torch_npu has for its autograd key stays: its own compositions of other operators, and its own derivatives, which
    lead to operators of the device that ``ops`` answers.
    """
    import torch

    left = {f"aten::{name}" for name in (*_KEPT, *_PACKING)}
    names = [n for n in registered_by_torch_npu() if n not in left and not _is_composed_by_torch_npu(n)]
    kernels = torch.ops.npuport_sim
    kernels.install_cpu_kernels(
        [n for n in names if _has_cpu_kernel(n)],
        *([f"aten::{name}" for name in listed] for listed in (_MIXING, _FUSED, _INT32_INDICES)),
    )
    own = {**_PACKING, **dict.fromkeys(_PAST_THE_DISPATCHER, "CompositeImplicitAutograd")}
    for name, key in own.items():
        at = ["PrivateUse1"] if key == "CompositeExplicitAutograd" else ["PrivateUse1", "AutogradPrivateUse1"]
        kernels.install_own_kernels([f"aten::{name}"], key, at)


def _is_composed_by_torch_npu(name: str) -> bool:
    """Whether torch_npu answers the autograd key of ``name`` with other operators, which have derivatives of theirs."""
    import torch

    if not name.startswith("aten::"):
        return False  # torch_npu's own operators lead from there straight to CANN

    lines = torch._C._dispatch_dump(name).splitlines()
    return any(line.startswith("AutogradPrivateUse1") and "RegisterAutogradNPU" in line for line in lines)


def missing() -> list[str]:
    """Operators of torch_npu (``aten::…``, ``npu::…``) that would still reach CANN.

    They have no CPU kernel, no composition and no reference in ``ops``.
    """
    import torch

    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    candidates = (n for n in names if n.startswith(("aten::", "npu::")) and n.removeprefix("aten::") not in _KEPT)
    return sorted(n for n in candidates if _has_schema(n) and not _is_simulated(n) and not _is_composed_by_torch_npu(n))


def _has_schema(name: str) -> bool:
    import torch

    base, _, overload = name.partition(".")
    try:
        torch._C._dispatch_find_schema_or_throw(base, overload)
    except RuntimeError:
        return False
    return True


def _is_simulated(name: str) -> bool:
    """Whether the kernel that answers on the npu device came from this package, and not from torch_npu."""
    import torch

    active = (line for line in torch._C._dispatch_dump(name).splitlines() if line.startswith("PrivateUse1: "))
    return not any("torch_npu" in line or "op_plugin" in line for line in active)
