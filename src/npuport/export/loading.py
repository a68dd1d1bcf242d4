"""The model to export: from a callable of the user's code or a Hugging Face folder, with weights read safely."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError, first_line

if TYPE_CHECKING:
    import torch

_SHOWN = 5  # names of parameters in an error
_WRAPPERS = ("module.", "_orig_mod.")  # DistributedDataParallel and torch.compile put these before each name


def load_model(source: str, arguments: Mapping[str, Any]) -> torch.nn.Module:
    """The model of ``package.module:callable``, ``file.py:callable`` or a folder with a config.json, on the CPU.

    Raises:
        UserError: there is no such model, or it cannot be made.
    """
    import torch

    from npuport.export.cpu_only import OnCpu

    folder = Path(source)
    with OnCpu():
        if folder.is_dir():
            return _hugging_face(folder)
        made = _made(source, arguments)
    if not isinstance(made, torch.nn.Module):
        raise UserError(
            "{source} gave a {kind}, not a torch.nn.Module: name a class of a module, a function that makes one, "
            "or a module.",
            source=source,
            kind=type(made).__name__,
        )
    return made.to("cpu").eval()


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of the callable from JSON.

    Raises:
        UserError: the text is no JSON object.
    """
    try:
        arguments = json.loads(text or "{}")
    except ValueError as error:
        raise UserError("--arguments is no JSON: {reason}.", reason=error) from error
    if not isinstance(arguments, dict):
        raise UserError('--arguments takes a JSON object such as {{"num_classes": 10}}.')
    return arguments


def load_weights(model: torch.nn.Module, path: Path, key: str) -> None:
    """Fill ``model`` with the weights in a checkpoint; names must match one to one.

    Raises:
        UserError: the file cannot be read as weights, or they are another model's.
    """
    weights = _without_wrappers(_state_dict(_read(path), path, key))
    try:
        result = model.load_state_dict(weights, strict=False)
    except RuntimeError as error:  # sizes differ; the first line only says whose
        reason = " ".join(str(error).split("\n\t")[1:2]).strip() or str(error)
        raise UserError("{path} holds weights of other sizes: {reason}", path=path, reason=reason) from error
    if result.missing_keys or result.unexpected_keys:
        raise UserError(
            "{path} holds the weights of another model. Missing there: {missing}. Unknown to the model: {unexpected}.",
            path=path,
            missing=_some(result.missing_keys),
            unexpected=_some(result.unexpected_keys),
        )


def _some(names: list[str]) -> str:
    more = f", … ({len(names)})" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more if names else "-"


def _made(source: str, arguments: Mapping[str, Any]) -> Any:
    import torch

    place, _, name = source.rpartition(":")
    if not place or not name:
        raise UserError(
            "{source} is no model: give MODULE:CALLABLE such as nets.resnet:resnet18 or nets/resnet.py:resnet18, "
            "or a Hugging Face folder with a config.json.",
            source=source,
        )
    found: Any = _module(place)
    for part in name.split("."):
        if not hasattr(found, part):
            raise UserError("{place} has no {name}.", place=place, name=name)
        found = getattr(found, part)
    if isinstance(found, torch.nn.Module) or not callable(found):
        return found
    try:
        return found(**arguments)
    except Exception as error:
        raise UserError(
            "{source} could not be called: {reason}. Arguments go into --arguments as JSON; it takes {signature}.",
            source=source,
            reason=f"{type(error).__name__}: {error}",
            signature=_signature(found),
        ) from error


def _signature(called: Any) -> str:
    try:
        return str(inspect.signature(called))
    except (TypeError, ValueError):
        return "?"


def _module(place: str) -> Any:
    path = Path(place)
    try:
        if path.suffix != ".py":
            sys.path.insert(0, str(Path.cwd()))
            return importlib.import_module(place)
        if not path.is_file():
            raise UserError("no such file: {path}.", path=path)
        sys.path.insert(0, str(path.resolve().parent))
        # A file may be called as a module that this program needs, such as types.py.
        name = path.stem if path.stem not in sys.modules else f"_file_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None  # a .py file always has a loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    except UserError:
        raise
    except SystemExit as error:
        raise UserError(
            "{place} ends the program when it is imported: keep what trains under if __name__ == '__main__'.",
            place=place,
        ) from error
    except Exception as error:
        raise _import_failed(place, error) from error


def _import_failed(place: object, error: Exception) -> UserError:
    reason = f"{type(error).__name__}: {error}"
    if any(name in reason for name in ("torch_npu", "libhccl", "libascend")):
        return UserError(
            "{place} needs torch_npu, which does not load here: {reason}. Run the same command behind "
            "`npuport run --sim --`, or on the NPU machine.",
            place=place,
            reason=reason,
        )
    return UserError("{place} cannot be imported: {reason}.", place=place, reason=reason)


def _hugging_face(folder: Path) -> torch.nn.Module:
    config_file = folder / "config.json"
    if not config_file.is_file():
        raise UserError("{folder} has no config.json: it is no Hugging Face model.", folder=folder)
    try:
        import transformers
    except ImportError as error:
        raise UserError("{folder} needs transformers: pip install transformers", folder=folder) from error
    try:
        architectures = json.loads(config_file.read_text(encoding="utf-8")).get("architectures") or []
    except ValueError as error:
        raise UserError("{path} is no JSON: {reason}.", path=config_file, reason=error) from error
    try:
        kind = getattr(transformers, architectures[0], None) if architectures else None
    except Exception as error:  # transformers imports its parts, and torch_npu where it is installed, when asked
        raise _import_failed(folder, error) from error
    if kind is None:
        raise UserError(
            "{path} names no class of transformers {version} under architectures.",
            path=config_file,
            version=transformers.__version__,
        )
    try:
        model: torch.nn.Module = kind.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        raise UserError("{folder} cannot be loaded: {reason}.", folder=folder, reason=error) from error
    config: Any = model.config
    if getattr(config, "use_cache", False):
        config.use_cache = False  # a cache is an object, no tensor: `--cache` makes tensors of it
    return model.float().eval()  # ATC chooses the precision; onnxruntime computes little in bfloat16


def _read(path: Path) -> Any:
    import torch

    if not path.is_file():
        raise UserError("no such file: {path}.", path=path)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = first_line(error)
        raise UserError(
            "{path} cannot be read as weights alone ({reason}). Nothing else in it is run: save "
            "model.state_dict() of the model on the CPU, and give that file.",
            path=path,
            reason=reason,
        ) from error


def _state_dict(loaded: Any, path: Path, key: str) -> dict[str, Any]:
    """The weights in what a checkpoint holds: itself, or the one entry that is nothing but tensors."""
    if not isinstance(loaded, Mapping):
        raise UserError("{path} holds a {kind}, no weights by name.", path=path, kind=type(loaded).__name__)
    if key:
        if not _is_weights(loaded.get(key)):
            keys = ", ".join(str(name) for name in loaded)
            raise UserError("{path} has no weights under {key}. It has: {keys}.", path=path, key=key, keys=keys)
        return dict(loaded[key])
    if _is_weights(loaded):
        return dict(loaded)
    candidates = [str(name) for name, value in loaded.items() if _is_weights(value)]
    if len(candidates) == 1:
        return dict(loaded[candidates[0]])
    raise UserError(
        "{path} has weights under {number} keys ({keys}): name one with --checkpoint-key.",
        path=path,
        number=len(candidates),
        keys=", ".join(candidates or [str(name) for name in loaded]),
    )


def _is_weights(value: Any) -> bool:
    import torch

    return isinstance(value, Mapping) and bool(value) and all(isinstance(one, torch.Tensor) for one in value.values())


def _without_wrappers(weights: dict[str, Any]) -> dict[str, Any]:
    for prefix in _WRAPPERS * 2:  # either may be around the other
        if all(name.startswith(prefix) for name in weights):
            weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    return weights
