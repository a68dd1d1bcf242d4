"""Precision debugging: whether the numbers of two runs agree, and what breaks them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from os import PathLike


def record(
    folder: str | PathLike[str],
    *,
    what: str = "tensors",
    steps: str = "0",
    ranks: str = "",
    modules: Sequence[str] = (),
    operators: Sequence[str] = (),
    phases: Sequence[str] = (),
    when: str = "",
) -> AbstractContextManager[None]:
    """Record operator calls of the training steps of the code inside, for `npuport precision compare`.

    - ``folder``: gets one file for each step and rank, step0/rank0.pt.
    - ``what``: "tensors", "statistics" (max, min, mean, norm, how many NaN and infinite) or "checksums" (both
      statistics and checksums of the bits).
    - ``steps``, ``ranks``: "0", "3,10-12" or "5-"; "" for all. Steps are those of optimizers, counted from 0.
    - ``modules``, ``operators``: patterns such as "layers.0" (with all inside of it), "layers.*.attn", "aten.mm".
    - ``phases``: of "forward", "backward" and "optimizer".
    - ``when``: "nan" or "spike": only the first step in which something is not finite, or the loss jumps, and the step
      before it.

    Raises:
        UserError: an argument is none of these.
    """
    from pathlib import Path

    from npuport.precision.operators.options import Options
    from npuport.precision.operators.scope import Scope
    from npuport.precision.operators.session import recording

    scope = Scope(tuple(modules), tuple(operators), tuple(phases))
    return recording(Options(Path(folder), what, steps, ranks, when, scope))
