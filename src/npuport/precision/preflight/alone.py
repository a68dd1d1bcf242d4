"""What keeps one run from being compared: what is random in it, and what it does not tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npuport.findings import say
from npuport.precision.preflight.comparing import hyperparameters, is_dropping
from npuport.precision.preflight.differences import Difference, differs, ranked
from npuport.precision.preflight.hyperparameters import judge_hyperparameters
from npuport.precision.preflight.reading import Facts


def judge_run(run: Mapping[int, Facts]) -> list[Difference]:
    """What is not deterministic in a run, and what a comparison will not know of it."""
    first = next(iter(run.values()))
    found = [*_random(first), *_switches(first), *_unknown(first), *judge_hyperparameters(first)]
    for rank, facts in run.items():
        found += _between_ranks(first, facts, rank)
    return ranked(found)


def _random(facts: Facts) -> Iterator[Difference]:
    if facts["random"].get("torch_seed") is None:
        yield differs("seed", say("PyTorch was never seeded: weights and random numbers differ in every run"))
    if is_dropping(facts):
        places = [path for model in facts["models"] for path, (_, training) in model["dropout"].items() if training]
        text = say("dropout is on at {number} places: {paths}", number=len(places), paths=", ".join(places[:4]))
        yield differs("dropout", text)
    for number, loader in enumerate(facts["loaders"]):
        if loader["sampler"] == "RandomSampler":
            yield differs("batch-order", say("data loader {number} draws its samples at random", number=number + 1))


def _switches(facts: Facts) -> Iterator[Difference]:
    settings = facts["settings"]
    if not settings["deterministic_algorithms"]:
        yield differs("determinism", say("torch.use_deterministic_algorithms is off"))
    if settings["cudnn.benchmark"]:
        yield differs("determinism", say("cuDNN chooses its algorithms by measuring (cudnn.benchmark)"))
    is_npu_job = settings.get("device") == "npu" and facts["parallel"]["world_size"] > 1
    if is_npu_job and facts["variables"].get("HCCL_DETERMINISTIC") not in ("true", "strict"):
        yield differs("determinism", say("HCCL_DETERMINISTIC is not true: reductions may add in another order"))
    if facts["variables"].get("PYTHONHASHSEED") in (None, "random"):
        yield differs("determinism", say("PYTHONHASHSEED is not set: sets of strings have another order in every run"))


def _unknown(facts: Facts) -> Iterator[Difference]:
    if not hyperparameters(facts):
        side = say("this run")
        yield differs("unknown", say("hyper-parameters of {side}: it parses no arguments and reads no file", side=side))
    if not facts["models"]:
        yield differs("unknown", say("no model was seen: its forward pass is compiled as a whole, or no hook sees it"))
    if not (facts["batches"] or any(loader["batches"] for loader in facts["loaders"])):
        yield differs("unknown", say("no batch was seen"))
    if facts["code"].get("dirty"):
        yield differs("code", say("the repository has changes that no commit holds"))


def _between_ranks(first: Facts, facts: Facts, rank: int) -> Iterator[Difference]:
    """Versions must be equal on all ranks; whether weights must be depends on how the model is divided."""
    for name in sorted(first["versions"].keys() & facts["versions"].keys()):
        if first["versions"][name] != facts["versions"][name]:
            text = say(
                "rank {rank} has {name} {version}, rank {first} {other}",
                rank=rank,
                name=name,
                version=facts["versions"][name],
                first=first["rank"],
                other=first["versions"][name],
            )
            yield differs("version", text, rank)
