"""Main module of a spawned process: the script that started it, converted. Run by multiprocessing, never imported."""

from __future__ import annotations

import os
from pathlib import Path

from npuport.runtime import activation, importer

if __name__ == "__mp_main__":
    activation.activate()
    __file__ = os.environ[activation.SCRIPT]
    exec(importer.converted_code(Path(__file__), Path(__file__).parent), globals())
