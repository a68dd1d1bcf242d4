"""Checks of the options by themselves: names, values, exclusions, what needs what, and the chip."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from npuport import facts
from npuport.export.atc.command import AtcCommand
from npuport.export.atc.problems import Problem, advised, doubtful, refused
from npuport.facts.atc import Setting
from npuport.findings import Basis, say

_FORMATS = {
    "0": ("NCHW", "ND"),
    "1": ("NCHW",),
    "3": ("NCHW", "NHWC", "ND", "NCDHW", "NDHWC"),
    "5": ("NCHW", "ND", "NCDHW"),
}
_FORMATS_FROM = Basis("CANN ge, main_impl.cc, CLI_options/--input_format.md", "documented", "August 2026")
_OPTIONS_FROM = Basis("CANN ge, atc_flags.cc", "documented", "August 2026")
_SUFFIXES = {"0": ".prototxt", "1": ".air", "3": ".pb", "5": ".onnx"}
_OUTPUT_TYPES = {"FP32", "FP16", "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "UINT64", "INT64", "DOUBLE"}
_OUTPUT_TYPES_950 = {"HIF8", "FP8E5M2", "FP8E4M3FN"}
_OUTPUT_TYPES_FROM = Basis("CANN ge, CLI_options/--output_type.md", "documented", "August 2026")
_PRECISION_FROM = Basis("CANN ge, CLI_options/--precision_mode.md, --precision_mode_v2.md", "documented", "August 2026")
_SOC_FROM = Basis("CANN ge, CLI_options/--soc_version.md; chips that torch_npu knows", "documented", "August 2026")


def family_of(command: AtcCommand) -> str | None:
    """The family of the chip that is compiled for; None where it is not known."""
    found = facts.chip(command.get("soc_version")) if command.get("soc_version") else None
    return found.family if found is not None else None


def check_options(command: AtcCommand) -> Iterator[Problem]:
    """Everything that the options alone say."""
    yield from _names(command)
    yield from _values(command)
    yield from _exclusions(command)
    yield from _requirements(command)
    yield from _chip(command)
    yield from _format(command)
    yield from _output_type(command)
    yield from _precision(command)


def _names(command: AtcCommand) -> Iterator[Problem]:
    known = [one.name for one in facts.all_atc_options()]
    for name in command.options:
        option = facts.atc_option(name)
        if option is None:
            near = difflib.get_close_matches(name, known, n=1)
            unknown = (
                say("ATC has no option --{name}. Did you mean --{near}?", name=name, near=near[0])
                if near
                else say("ATC has no option --{name}.", name=name)
            )
            yield refused("", _OPTIONS_FROM, unknown)
        elif option.given_up:
            yield doubtful(option.basis, say("--{name} is given up: ranges go into --input_shape.", name=name))
    if command.cut_off:
        yield refused("", None, say("a space stands behind the \\ at the end of a line: the command ends there."))
    for stray in command.strays:
        yield refused(
            "", None, say("{word} belongs to no option. Values with spaces or ; stand in quotation marks.", word=stray)
        )


def _values(command: AtcCommand) -> Iterator[Problem]:
    for name in command.options:
        option, value = facts.atc_option(name), command.get(name)
        if option is not None and value and option.values and value not in option.values:
            yield refused(
                "E10001",
                option.basis,
                say("--{name} takes {values}, not {value}.", name=name, values=", ".join(option.values), value=value),
            )


def _stands(command: AtcCommand, setting: Setting) -> bool | None:
    """Whether the command has the setting; None where only the shell knows."""
    if setting.absent:
        return not command.has(setting.option)
    if setting.option == "mode":  # it has a default
        return command.mode == setting.value and "singleop" not in command.options
    if not command.has(setting.option):
        return False
    value = command.options[setting.option]
    if not setting.value:
        return True
    return None if value is None else value == setting.value


def _exclusions(command: AtcCommand) -> Iterator[Problem]:
    for one in facts.all_atc_exclusions():
        if _stands(command, one.first) and _stands(command, one.second):
            if one.effect == "refused":
                yield refused(
                    one.code,
                    one.basis,
                    say("{first} and {second} exclude each other.", first=one.first, second=one.second),
                )
            elif one.effect == "refused by older":
                yield doubtful(
                    one.basis,
                    say(
                        "{first} and {second} exclude each other up to CANN {version}.",
                        first=one.first,
                        second=one.second,
                        version=one.basis.version,
                    ),
                )
            else:
                yield doubtful(
                    one.basis, say("{second} has no effect beside {first}.", first=one.first, second=one.second)
                )


def _requirements(command: AtcCommand) -> Iterator[Problem]:
    for one in () if command.elided else facts.all_atc_requirements():
        met = [_stands(command, need) for need in one.needs]
        if not _stands(command, one.setting) or any(state is None or state for state in met):
            continue
        needs = " | ".join(str(need) for need in one.needs if not need.absent)
        if one.setting.option == "mode" and one.setting.value == "0":
            sentence = say("{needs} is missing.", needs=needs)
        else:
            sentence = say("{setting} needs {needs}.", setting=one.setting, needs=needs)
        yield refused(one.code, one.basis, sentence) if one.effect == "refused" else advised(one.basis, sentence)


def _chip(command: AtcCommand) -> Iterator[Problem]:
    name = command.get("soc_version")
    if not name:
        return
    found = facts.chip(name)
    if found is None:
        known = [one.name for one in facts.all_chips()]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
        yield doubtful(
            _SOC_FROM,
            say(
                "--soc_version={name}: no chip that is known here. ATC takes the name of the chip as `npu-smi info` "
                "shows it behind Ascend, such as {near}.",
                name=name,
                near=", ".join(near or ["Ascend310P3", "Ascend910B3"]),
            ),
        )
        return
    if not name.startswith("Ascend"):
        yield refused(
            "", _SOC_FROM, say("--soc_version={name}: the name begins with Ascend: {full}.", name=name, full=found.name)
        )
    for given in command.options:
        option = facts.atc_option(given)
        if option is not None and found.family in option.families_without and command.get(given) not in ("0", "false"):
            yield doubtful(
                option.basis,
                say("--{name} is not supported on {chip}.", name=given, chip=command.get("soc_version")),
            )


def _format(command: AtcCommand) -> Iterator[Problem]:
    given, allowed = command.get("input_format"), _FORMATS.get(command.get("framework"))
    if given and allowed and given not in allowed:
        sentence = say(
            "--input_format takes {values} with --framework={framework}, not {value}.",
            values=", ".join(allowed),
            framework=command.get("framework"),
            value=given,
        )
        # Documents: without effect on MindSpore's .air files, an error on others.
        ignored = command.get("framework") == "1"
        yield doubtful(_FORMATS_FROM, sentence) if ignored else refused("E10001", _FORMATS_FROM, sentence)
    suffix = re.search(r"\.(onnx|pb|air|prototxt)$", command.get("model"))
    expected = _SUFFIXES.get(command.get("framework"))
    if suffix is not None and expected is not None and suffix[0] != expected:
        yield doubtful(
            Basis("CANN ge, CLI_options/--framework.md", "documented", "August 2026"),
            say(
                "--framework={framework} reads {expected} files, and --model is {model}.",
                framework=command.get("framework"),
                expected=expected,
                model=command.get("model"),
            ),
            "E10041",
        )


def _output_type(command: AtcCommand) -> Iterator[Problem]:
    given = command.get("output_type")
    if not given:
        return
    types = _OUTPUT_TYPES | (_OUTPUT_TYPES_950 if family_of(command) in (None, "950") else set())
    parts = [part for part in given.split(";") if part]
    for part in parts:
        kind = part.rpartition(":")[2].strip()
        if kind not in types:
            yield refused(
                "E10001",
                _OUTPUT_TYPES_FROM,
                say("--output_type takes {values}, not {value}.", values=", ".join(sorted(types)), value=kind),
            )
    if ":" in given and not command.has("out_nodes"):
        yield refused(
            "",
            _OUTPUT_TYPES_FROM,
            say("{setting} needs {needs}.", setting=f"--output_type={given}", needs="--out_nodes"),
        )


def _precision(command: AtcCommand) -> Iterator[Problem]:
    """bfloat16 and hifloat8 are of some chips alone."""
    family = family_of(command)
    for name in ("precision_mode", "precision_mode_v2"):
        value = command.get(name)
        without_bf16 = family in ("910", "310P") and ("bf16" in value or "bfloat16" in value)
        without_hif8 = family not in (None, "950") and "hif8" in value
        if without_bf16 or without_hif8:
            yield refused(
                "",
                _PRECISION_FROM,
                say(
                    "{setting}: {chip} has no {dtype}.",
                    setting=f"--{name}={value}",
                    chip=command.get("soc_version"),
                    dtype="bfloat16" if without_bf16 else "hifloat8",
                ),
            )
