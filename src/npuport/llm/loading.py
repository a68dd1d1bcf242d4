"""A causal language model from a folder, with its weights or with random ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuport.errors import UserError
from npuport.llm.devices import Device, dtype_called, memory_ran_out


@dataclass(frozen=True)
class Loaded:
    """``tokenizer`` is None where the folder has none; ``longest`` is the longest context in tokens, if told."""

    model: Any
    tokenizer: Any
    longest: int | None
    random_weights: bool

    @property
    def parameters(self) -> int:
        """How many numbers the model learned; shared ones count once."""
        return sum(one.numel() for one in self.model.parameters())

    @property
    def dtype(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def vocabulary(self) -> int:
        return int(self.model.config.get_text_config().vocab_size)


def folder_of(path: Path) -> Path:
    """The folder of a model, given by itself or by its config.json.

    Raises:
        UserError: there is no such model.
    """
    folder = path.parent if path.name == "config.json" else path
    if not (folder / "config.json").is_file():
        raise UserError("{path} holds no config.json: give the folder of a Hugging Face model.", path=path)
    return folder


def load(path: Path, device: Device, dtype: str, *, random_weights: bool, own_code: bool) -> Loaded:
    """The model of a folder (or of a lone ``config.json``, with random weights), on the device, for inference.

    Nothing is downloaded. ``own_code`` lets Python files of the folder run.

    Raises:
        UserError: the folder holds no model that transformers can build.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = folder_of(path)
    wanted = dtype_called(dtype)
    options: dict[str, Any] = {"trust_remote_code": own_code}
    models: Any = AutoModelForCausalLM
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, **options)
        if random_weights:
            torch.manual_seed(0)
            stored = getattr(config, "dtype", None) or torch.bfloat16
            with torch.device(device.name):
                model = models.from_config(config, dtype=stored if isinstance(wanted, str) else wanted, **options)
        else:
            model = models.from_pretrained(folder, dtype=wanted, local_files_only=True, **options)
        model = model.to(device.name).eval()
    except _REFUSED as error:
        raise _why(folder, device, error, random_weights=random_weights) from error
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return Loaded(model, _tokenizer(folder, own_code=own_code), longest, random_weights)


# What the classes of transformers raise at configs and weights that do not go together.
_REFUSED = (OSError, ValueError, KeyError, ImportError, AssertionError, AttributeError, TypeError, RuntimeError)


def _why(folder: Path, device: Device, error: Exception, *, random_weights: bool) -> UserError:
    if memory_ran_out(error):
        return UserError(
            "{path} does not fit into the memory of {device}. `npuport model choose --config {path}` tells its size.",
            path=folder,
            device=device.name,
        )
    weights = [*folder.glob("*.safetensors"), *folder.glob("*.bin")]
    if not random_weights and not weights:
        return UserError(
            "{path} holds no weights. Download them, or measure with random ones: --random-weights.", path=folder
        )
    return UserError("no language model can be made of {path}: {reason}", path=folder, reason=_first_line(error))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _tokenizer(folder: Path, *, own_code: bool) -> Any:
    names = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
    if not any((folder / name).is_file() for name in names):
        return None
    from transformers import AutoTokenizer

    tokenizers: Any = AutoTokenizer
    try:
        return tokenizers.from_pretrained(folder, local_files_only=True, trust_remote_code=own_code)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise UserError(
            "no tokenizer can be loaded from {source}: {reason}", source=folder, reason=_first_line(error)
        ) from error
