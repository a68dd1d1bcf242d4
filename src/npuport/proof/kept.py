"""Verdicts that were reached before, kept in the user's cache directory under a hash of all that they depend on."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from npuport.findings import Claim, Outcome, Verdict
from npuport.report.json_report import verdict_json

LIMIT = 4000  # verdicts of some 500 bytes; those not used for longest are removed


def default_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("npuport")) / "proofs"


@dataclass(frozen=True)
class VerdictCache:
    """Verdicts by claim. A folder that cannot be read or written, and a damaged entry, mean that nothing is known."""

    folder: Path = field(default_factory=default_folder)

    def read(self, claim: Claim, chip: str) -> Verdict | None:
        """The verdict on a claim on this very simulated NPU."""
        place = self._place(claim, chip)
        try:
            found = verdict_of(json.loads(place.read_text(encoding="utf-8")))
            place.touch()
        except (OSError, ValueError, KeyError):
            return None
        return found

    def write(self, claim: Claim, chip: str, verdict: Verdict) -> None:
        """Keep a verdict, whole or not at all; what could not run is tried again the next time."""
        if verdict.outcome is Outcome.UNTRIED:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".aside", delete=False) as aside:
                json.dump(verdict_json(verdict), aside)
            Path(aside.name).replace(self._place(claim, chip))
            entries = sorted(self.folder.iterdir(), key=lambda one: one.stat().st_mtime_ns)
            for old in entries[:-LIMIT]:
                old.unlink(missing_ok=True)
        except OSError:
            return

    def _place(self, claim: Claim, chip: str) -> Path:
        asked = json.dumps([asdict(claim), chip, self._runs_on]).encode()
        return self.folder / f"{hashlib.sha256(asked).hexdigest()}.json"

    @cached_property
    def _runs_on(self) -> list[str]:
        """What a verdict depends on beside the claim: torch, torch_npu, the simulated NPU and the comparison."""
        package = Path(__file__).parents[1]
        own = hashlib.sha256()
        for folder in ("sim", "proof"):
            for place in sorted((package / folder).rglob("*")):
                if place.is_file() and place.suffix != ".pyc":
                    own.update(place.relative_to(package).as_posix().encode() + place.read_bytes())
        return [own.hexdigest(), *(metadata.version(name) for name in ("torch", "torch-npu"))]


def verdict_of(document: dict[str, Any]) -> Verdict:
    """The verdict in a document such as ``verdict_json`` makes.

    Raises:
        KeyError, ValueError: it is none.
    """
    return Verdict(
        Outcome(document["outcome"]),
        document["reason"],
        tuple((dtype, error) for dtype, error in document["difference"].items()),
        tuple((dtype, error) for dtype, error in document["original"].items()),
        document["runs"],
        tuple(document["notes"]),
    )
