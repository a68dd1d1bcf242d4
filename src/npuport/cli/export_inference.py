"""What `npuport export inference` does and says."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from npuport.errors import UserError
from npuport.report.language import counted, translate


def write_inference(
    model: Path, om: str, folder: Path, kind: str, sizes: Sequence[str], given: Sequence[str], number: int
) -> None:
    """Write inputs, the command and the comparison, and say what to do with them."""
    import io

    from npuport.cli.shared import write_aside
    from npuport.export.inference import KINDS, plan
    from npuport.export.inputs import parse_sizes
    from npuport.export.onnx_graph import read_graph

    if kind not in KINDS:
        raise UserError("--dynamic takes batch, image, dims or shape, not {given}.", given=kind)
    inputs = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals:
            raise UserError("--input {text} is not understood. Write NAME=FILE.npy or NAME=FOLDER.", text=text)
        inputs[name] = Path(path)
    try:
        import numpy as np
    except ImportError as error:
        raise UserError('{name} is missing: pip install torch "npuport[export]"', name="numpy") from error
    one_size = {name: values[0] for name, values in parse_sizes(sizes).items()}
    planned = plan(read_graph(model), om, kind, one_size, inputs, number)
    for name, array in planned.arrays.items():
        stream = io.BytesIO()
        np.save(stream, array)
        write_aside(folder / name, stream.getvalue())
    for name, text in planned.texts.items():
        write_aside(folder / name, text.encode())
    print(
        translate(
            "{folder}: {files} of inputs, run_om.sh for the NPU machine, compare.sh for onnxruntime. Neither was run.",
            folder=folder,
            files=counted(len(planned.arrays), "file"),
        )
    )
    print(
        translate(
            "Next: on the NPU machine bash {folder}/run_om.sh, then anywhere bash {folder}/compare.sh",
            folder=shlex.quote(str(folder)),
        )
    )
