"""Compiled operators of torchvision and mmcv that have no NPU kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import all_detection_operators, detection_operator
from npuport.findings import Finding, Severity
from npuport.rules.base import Context, Rule


def _markers() -> tuple[tuple[str, str], ...]:
    words = {operator.name.rpartition(".")[2] for operator in all_detection_operators()}
    return tuple((word, rf"\b{word}\b") for word in sorted(words))


class DetectionOperator(Rule):
    """A compiled operator of a detection library is called or made."""

    code = "NP717"
    name = "detection-operator"
    severity = Severity.WARNING
    markers = _markers()
    needs = (("torchvision", "mmcv"),)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        known = detection_operator(context.name_of(node.func) or "")
        if known is None:
            return
        home, _, last = known.name.replace(".ops.", ".").rpartition(".")
        instead = f"; {known.instead}" if known.instead else ""
        if known.kernel == "none":
            what = f"{home} has no NPU kernel for {last}, and raises an error for tensors of an NPU"
            what += " (implementation for device npu not found)"
        elif "torchvision_npu" in context.text_before:
            return
        else:
            what = f"{home} has no NPU kernel for {last}, which runs on the CPU unless torchvision_npu is imported"
        yield context.finding(
            self,
            node.func,
            f"{what}{instead}",
            basis=known.basis,
            severity=Severity.ERROR if known.kernel == "none" else self.severity,
            symbol=known.name,
        )


RULES: tuple[type[Rule], ...] = (DetectionOperator,)
