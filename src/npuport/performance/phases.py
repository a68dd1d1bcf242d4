"""What the training loop is doing at each time: loading data, forward, backward, optimizer, or something else."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from npuport.performance.intervals import Spans, clip, spans_of, subtract, union
from npuport.performance.tables import Category, Profile

_STEP_MARK = "ProfilerStep"
_ENGINE = "autograd::engine::evaluate_function"
_LOADER = "enumerate(DataLoader)"
_LOADER_FRAME = r"^torch/utils/data/dataloader\.py\(\d+\): __next__$"
_BACKWARD_FRAME = r"^torch/(_tensor|autograd/__init__)\.py\(\d+\): backward$"
_OPTIMIZER = r"^Optimizer\.(step|zero_grad)#"

_NAME = pl.col("name").cast(pl.String)
_CATEGORY = pl.col("category").cast(pl.String)
_MARKED = _CATEGORY.is_in([Category.OPERATOR, Category.ANNOTATION])


class Phase(enum.Enum):
    """A phase of one training step."""

    DATA = "data loading"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    OTHER = "post-processing"


@dataclass(frozen=True, slots=True)
class Phases:
    """When the training loop was in which phase; in a time that no span covers it did something else.

    ``backward_threads`` are autograd's own: whatever they launch belongs to the backward.
    """

    spans: Mapping[Phase, Spans]  # disjoint
    backward_threads: frozenset[int]


def phases_of(profile: Profile) -> Phases:
    """The phases of all steps of a profile.

    The forward is what lies between the operators that made nodes of autograd's graph (a backward operator carries
    their sequence number), widened to the modules and ranges around them. The backward is what autograd's threads did.
    """
    loops = profile.steps["thread"].drop_nulls().unique().to_list()
    loop = profile.events.filter(pl.col("thread").is_in(loops)) if loops else profile.events
    optimizer = spans_of(loop.filter(_NAME.str.contains(_OPTIMIZER)))
    data = subtract(_loading(loop), optimizer)
    backward_operators = _backward_operators(profile.events)
    threads = frozenset(backward_operators["thread"].drop_nulls().to_list()) - frozenset(loops)
    making = _making(loop, backward_operators)
    boundaries = profile.steps["start_ns"].to_list()
    fences = union([*data, *optimizer])
    worked = _backward_work(profile.events, backward_operators, threads)
    backward = subtract(_bridged(worked, union([*fences, *subtract(making, worked)]), boundaries), fences)
    taken = union([*fences, *backward])
    forward = _bridged(subtract(making, taken), taken, boundaries)
    forward = subtract(_widened(forward, loop, taken), taken)
    return Phases(
        {Phase.DATA: data, Phase.FORWARD: forward, Phase.BACKWARD: backward, Phase.OPTIMIZER: optimizer}, threads
    )


def _loading(loop: pl.DataFrame) -> Spans:
    marked = _MARKED & _NAME.str.starts_with(_LOADER)
    return spans_of(loop.filter(marked | (_CATEGORY.eq(Category.PYTHON) & _NAME.str.contains(_LOADER_FRAME))))


def _backward_operators(events: pl.DataFrame) -> pl.DataFrame:
    is_backward = (pl.col("forward_thread").fill_null(0) > 0) | _NAME.str.starts_with(_ENGINE)
    return events.filter(_CATEGORY.eq(Category.OPERATOR) & is_backward)


def _making(loop: pl.DataFrame, backward_operators: pl.DataFrame) -> Spans:
    """The operators that made a node of the graph: of those with the number of a backward operator the last.

    An operator that needs no gradient carries the number that the next node will get. Without any backward (inference,
    evaluation) every operator counts.
    """
    operators = loop.filter(_CATEGORY.eq(Category.OPERATOR) & ~_NAME.str.starts_with(_STEP_MARK))
    if backward_operators.is_empty():
        return spans_of(operators.filter(_NAME.str.contains("::")))
    numbers = backward_operators.select("sequence").drop_nulls().filter(pl.col("sequence") >= 0).unique()
    forward = operators.join(backward_operators.select("id"), on="id", how="anti")
    numbered = forward.join(numbers, on="sequence", how="semi").sort("start_ns")
    return spans_of(numbered.unique("sequence", keep="last"))


def _backward_work(events: pl.DataFrame, backward_operators: pl.DataFrame, threads: frozenset[int]) -> Spans:
    on_engine = _CATEGORY.eq(Category.OPERATOR) & pl.col("thread").is_in(list(threads))
    frames = _CATEGORY.eq(Category.PYTHON) & _NAME.str.contains(_BACKWARD_FRAME)
    return union([*spans_of(events.filter(on_engine | frames)), *spans_of(backward_operators)])


def _bridged(spans: Spans, fences: Spans, boundaries: list[int]) -> Spans:
    """The spans with the gaps between them, unless a fence or the start of a step lies in the gap."""
    result: Spans = []
    for start, end in spans:
        if result:
            before = result[-1][1]
            crosses = bisect_left(boundaries, before) != bisect_left(boundaries, start + 1)
            if not crosses and not clip(fences, before, start):
                result[-1] = result[-1][0], end
                continue
        result.append((start, end))
    return result


def _widened(forward: Spans, loop: pl.DataFrame, taken: Spans) -> Spans:
    """Each span with the ranges around its first and its last operator that hold nothing of another phase."""
    ranges = loop.filter(_CATEGORY.is_in([Category.OPERATOR, Category.ANNOTATION, Category.PYTHON]))
    ranges = ranges.filter(~_NAME.str.starts_with(_STEP_MARK)).select("start_ns", "end_ns")
    result = []
    for start, end in forward:
        around = ranges.filter(
            ((pl.col("start_ns") <= start) & (pl.col("end_ns") > start))
            | ((pl.col("start_ns") < end) & (pl.col("end_ns") >= end))
        )
        free = [span for span in around.iter_rows() if not clip(taken, *span)]
        result.append((min([start, *(first for first, _ in free)]), max([end, *(last for _, last in free)])))
    return union(result)
