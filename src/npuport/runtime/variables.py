"""CUDA's and NCCL's environment variables in a run on the NPU: passed on where they mean the same, else named once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

SAID = "NPUPORT_VARIABLES_SAID"
"""Variable with the names that a parent process has dealt with, separated by commas."""

# What a user sets for a run. Not what the images of NVIDIA's containers set (CUDA_HOME, NVIDIA_VISIBLE_DEVICES), nor
# PYTORCH_ALLOC_CONF, which torch_npu reads as well.
_OF_A_RUN = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE", "TORCH_CUDA_SANITIZER",
        "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCH_FR_BUFFER_SIZE",
    }
)  # fmt: skip
_NCCLS = ("NCCL_", "TORCH_NCCL_")
# torchrun sets it for its workers, to what is HCCL's default as well.
_TORCHRUNS_OWN = ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")


def hand_on(environment: MutableMapping[str, str]) -> Iterator[str]:
    """Set the NPU's variables that CUDA's mean; yields a line for each that is set, and for each that is not.

    Nothing is set that is set already. Children inherit both the variables and what has been said.
    """
    said = set(filter(None, environment.get(SAID, "").split(",")))
    names = sorted(
        name
        for name, value in environment.items()
        if name not in said and (name in _OF_A_RUN or name.startswith(_NCCLS)) and (name, value) != _TORCHRUNS_OWN
    )
    if not names:
        return
    environment[SAID] = ",".join(sorted({*said, *names}))
    for name in names:
        yield from _hand_on(name, environment)


def _hand_on(name: str, environment: MutableMapping[str, str]) -> Iterator[str]:
    from npuport.rules import environment as rules  # the rules take 0.1 s to load

    known, value = rules.cuda_variable(name), environment[name]
    if known is None or known.counterpart is None or known.counterpart in environment:
        return
    if known.counterpart == "PYTORCH_NPU_ALLOC_CONF" and "PYTORCH_ALLOC_CONF" in environment:
        return  # setting both is an error
    if name == "CUDA_VISIBLE_DEVICES" and all(number.isdecimal() for number in value.split(",")):
        # Ascend takes them in ascending order only. The same devices matter more than their order: others may be in
        # use by somebody else.
        value = ",".join(map(str, sorted(set(map(int, value.split(","))))))
    if rules.same_value(name, value):
        environment[known.counterpart] = value
        yield f"{name}={environment[name]} is passed on as {known.counterpart}={value}"
        return
    hint = f": {known.note[0].lower()}{known.note[1:].rstrip('.')}" if known.note else ""
    yield f"{name}={environment[name]} has no effect; {known.counterpart} is not set for it{hint}"
