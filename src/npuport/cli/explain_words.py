"""What `npuport explain` says about one word: lines made of the tables of facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuport.facts import (
        AscendVariable,
        Chip,
        CudaName,
        CustomOperator,
        EnvironmentCheck,
        ErrorCode,
        Library,
        Operator,
        TorchName,
        Variable,
    )
    from npuport.findings import Basis


def what_is_known(word: str) -> Iterator[str]:
    """What the tables say about a word, or about the text of an error; nothing when they do not know it."""
    from npuport import facts

    cuda = facts.torch_cuda(word) or facts.torch_cuda(f"torch.{word}") or facts.torch_cuda(f"torch.cuda.{word}")
    own = facts.custom_operator(word.removeprefix("torch_npu.").removeprefix("torch.ops.npu."))
    chip = facts.chip(word)
    library = facts.library(word) or facts.distribution(word)
    variable = facts.variable(word)
    name = facts.torch_name(word) or facts.torch_name(f"torch.{word}")
    operator = facts.operator_status(_operator_of(word))
    if cuda is not None:
        yield from _cuda_name(cuda)
    elif own is not None:
        yield from _custom_operator(own)
    elif chip is not None:
        yield from _chip(chip)
    elif library is not None:
        yield from _library(library)
    elif variable is not None:
        yield from _variable(variable)
    elif (ascend := facts.ascend_variable(word)) is not None:
        yield from _ascend_variable(ascend)
    elif (checked := _environment_check(word)) is not None:
        yield from _check(checked)
    elif name is not None:
        yield from _torch_name(name)
    elif operator is not None:
        yield from _operator(operator)
    else:
        yield from _error(word)


def _environment_check(word: str) -> EnvironmentCheck | None:
    """The check of `npuport doctor` with this code or name."""
    from npuport.facts import all_environment_checks

    return next((one for one in all_environment_checks() if word.upper() == one.code or word.lower() == one.name), None)


def _check(entry: EnvironmentCheck) -> Iterator[str]:
    from npuport.report.language import translate

    yield f"{entry.code} {entry.name} ({entry.severity.value})"
    yield f"  {translate(entry.why)}"
    yield f"  {translate('`npuport doctor` looks for it on this machine.')}"
    yield _source(entry.basis)


def _operator_of(word: str) -> str:
    """The aten name behind a spelling of torch's: torch.Tensor.isin, F.gelu, torch.ops.aten.add.Tensor."""
    for prefix in ("torch.ops.", "torch.Tensor.", "torch.nn.functional.", "F.", "torch."):
        if word.startswith(prefix):
            return word.removeprefix(prefix)
    return word


def _error(text: str) -> Iterator[str]:
    """A code, or the text of an error."""
    from npuport.facts import codes_in, error_code, known_error
    from npuport.report.language import translate

    codes = list(codes_in(text)) or ([text] if text.isascii() and text.isalnum() else [])
    named = [entry for code in codes if (entry := error_code(code)) is not None]
    for entry in named:
        yield from _code(entry)
    known = known_error(text)
    if known is None:
        if named:
            yield "  " + translate("More is not known. The lines around it in the log may: npuport explain --log FILE")
        return
    yield ("  " if named else "") + translate(known.cause)
    yield from (f"  - {translate(step)}" for step in known.steps)
    if known.role == "effect":
        yield "  - " + translate("npuport explain --log rank*.log finds the rank that failed first")
    yield _source(known.basis)


def _code(entry: ErrorCode) -> Iterator[str]:
    of = f" ({entry.component})" if entry.component else ""
    yield f"{entry.code}{of}: {entry.meaning or '(CANN gives it no name)'}"
    if entry.name and entry.name.startswith("ACL"):
        yield f"  {entry.name}"
    yield _source(entry.basis)


def _custom_operator(entry: CustomOperator) -> Iterator[str]:
    from npuport.facts import fused_operator, operator_schemas

    yield f"torch_npu.{entry.name}: {entry.range_in_words}"
    for schema in operator_schemas(entry.name):
        yield f"  {schema.text}"
        yield _source(schema.basis)
    fused = fused_operator(entry.name)
    if fused is not None:
        yield f"  {fused.limits}"
        yield f"  {'can be trained through' if fused.has_gradient else 'has no gradient: for inference'}"
        yield _source(fused.basis)
    yield _source(entry.basis)


def _torch_name(entry: TorchName) -> Iterator[str]:
    meaning = {
        "same": "works on an NPU",
        "renamed": f"{entry.npu_name}",
        "missing": "does not work on an NPU",
        "no-effect": "is accepted and has no effect on an NPU",
    }
    yield from _told(f"{entry.name}  →  {meaning[entry.status]}", entry.note, entry.basis)


def _operator(entry: Operator) -> Iterator[str]:
    meaning = {
        "npu": "has a kernel on the NPU",
        "composite": "is made of other operators, each with its own status",
        "cpu_fallback": "runs on the CPU, with copies both ways (TORCH_NPU_FALLBACK_CPU_DISABLE=1 makes it an error)",
        "mixed": "some overloads run on the NPU, others on the CPU",
        "none": "is not for the NPU",
    }
    yield f"{entry.name}: {meaning[entry.status]}"
    if entry.cpu_inside:
        yield "  its kernel has a path through the CPU"
    if entry.status == "mixed":
        for overload, runs_on in sorted(entry.overloads.items()):
            yield f"  {overload}: {runs_on}"
    yield from _refused_dtypes(entry)
    yield _source(entry.basis)


def _refused_dtypes(entry: Operator) -> Iterator[str]:
    """The dtypes that CANN's own documents refuse on the default chip."""
    from npuport import facts

    chip = facts.chip(facts.DEFAULT_CHIP)
    assert chip is not None
    for refused in facts.refused_dtypes(chip.family):
        if refused.certainty == "stated" and refused.operator.removeprefix("aten::") in entry.overloads:
            yield f"  {refused.operator} takes no {', '.join(refused.dtypes)} on chips of the family {chip.family}"


def _cuda_name(entry: CudaName) -> Iterator[str]:
    meaning = {
        "same": f"{entry.npu_name}, with the same meaning",
        "renamed": f"{entry.npu_name}",
        "missing": "no counterpart on torch.npu",
    }
    yield f"{entry.name}  →  {meaning[entry.status]}"
    if entry.note:
        yield f"  {entry.note}"
    if entry.cuda_signature:
        yield f"  CUDA: {entry.cuda_signature}"
        yield f"  NPU:  {entry.npu_signature or '(unknown)'}"
    yield _source(entry.basis)


def _variable(entry: Variable) -> Iterator[str]:
    meaning = {
        "renamed": f"{entry.counterpart}",
        "same": "read on Ascend, too",
        "no-counterpart": "nothing on Ascend reads it",
    }
    yield from _told(f"{entry.name}  →  {meaning[entry.status]}", entry.note, entry.basis)


def _ascend_variable(entry: AscendVariable) -> Iterator[str]:
    from npuport.facts import all_variables

    yield f"{entry.name} (read by {entry.read_by}): {entry.meaning}"
    if entry.values:
        yield f"  values: {entry.values}"
    for of_cuda in all_variables():
        if of_cuda.counterpart == entry.name:
            yield f"  in the CUDA world: {of_cuda.name}"
    yield _source(entry.basis)


def _library(entry: Library) -> Iterator[str]:
    meaning = {
        "native": "supports Ascend itself",
        "adapted": f"works on Ascend with {entry.replacement}",
        "replace": f"use {entry.replacement} instead",
        "cuda-only": "CUDA only; no counterpart is known",
        "neutral": "has no device code; works as it is",
    }
    yield from _told(f"{entry.name}: {meaning[entry.status]}", entry.note, entry.basis)


def _chip(entry: Chip) -> Iterator[str]:
    from npuport.facts.mixed_precision import float16_scaler, mixed_precision

    overflow = {
        "saturation": "overflow saturates and NaN becomes 0; only the overflow flag shows it",
        "inf_nan": "overflow gives Inf and NaN, as IEEE says",
        "both": "overflow gives Inf and NaN, as IEEE says; saturation can be switched on",
    }
    yield f"{entry.name} (family {entry.family}, SoC version {entry.soc_version})"
    if entry.memory_gib is not None:
        yield f"  memory {entry.memory_gib} GiB"
    yield f"  bfloat16: {'yes' if entry.bf16 else 'no'}; {overflow[entry.overflow]}"
    advised = mixed_precision(entry)
    scaled = f" with {advised.scaler}" if advised.scaler else f", unscaled; float16 needs {float16_scaler(entry)}"
    yield f"  mixed precision: {advised.dtype}{scaled}"
    if entry.note:
        yield f"  {entry.note}"
    yield _source(entry.basis)


def _told(line: str, note: str, basis: Basis) -> Iterator[str]:
    """A line, a note if there is one, and where both come from."""
    yield line
    if note:
        yield f"  {note}"
    yield _source(basis)


def _source(basis: Basis) -> str:
    return f"  [{basis}]"


def nearest(word: str) -> str:
    """ " Did you mean …?" with the nearest words that are known, or where to look."""
    import difflib

    from npuport.report.language import translate

    near = difflib.get_close_matches(word.lower(), _known(), n=3, cutoff=0.6)
    if near:
        return " " + translate("Did you mean {words}?", words=", ".join(_known()[name] for name in near))
    return " " + translate("`npuport explain` lists the rules.")


def _known() -> dict[str, str]:
    """Every word that can be explained, by its lower-case form."""
    from npuport import facts
    from npuport.cli.documents import rule_documents

    words = [part for document in rule_documents() for part in (document.code, document.name)]
    words += [entry.name for entry in facts.all_torch_cuda_names()]
    words += [entry.name for entry in facts.all_variables()]
    words += [entry.name for entry in facts.all_ascend_variables()]
    words += [entry.name for entry in facts.all_libraries()]
    words += [entry.name for entry in facts.all_chips()]
    words += [part for entry in facts.all_environment_checks() for part in (entry.code, entry.name)]
    words += [f"torch_npu.{entry.name}" for entry in facts.all_custom_operators()]
    words += facts.all_operators()
    return {word.lower(): word for word in words}
