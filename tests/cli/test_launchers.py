"""Commands whose Python processes a run does not reach are named before it starts."""

from __future__ import annotations

import pytest

from npuport.cli.launchers import unreached


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("ssh host python train.py", "ssh … npuport run"),
        ("/usr/bin/docker run image python train.py", "docker … npuport run"),
        ("sbatch job.sh", "the job's script"),
        ("mpirun -n 2 -H a,b python train.py", "-x PYTHONPATH"),
        ("mpirun --hostfile hosts -x PATH python train.py", "-x PYTHONPATH"),
        ("srun --export=PATH python train.py", "add ALL"),
        ("python -E train.py", "python -E ignores"),
        ("python -u -m pdb train.py", "pdb compiles the script"),
        ("coverage run train.py", "coverage compiles the script"),
        ("python3.11 -uI train.py", "python -uI ignores"),
    ],
)
def test_unreached(command: str, word: str) -> None:
    assert word in (unreached(command.split()) or "")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "train.py -E",
        "python -u train.py -I",
        "python -W Ignore -X IMPORTTIME train.py",
        "python -m torch.distributed.run -I train.py",
        "mpirun -n 2 python train.py",
        "python -m train pdb",
        "python train.py -m pdb",
        "python -m",
        "mpirun -H a,b -x PYTHONPATH python train.py",
        "mpirun -H a,b -x PYTHONPATH=/x python train.py",
        "srun -n 2 python train.py",
        "srun --export=ALL,X=1 python train.py",
        "bash run.sh",
        "torchrun --nproc-per-node 2 train.py",
    ],
)
def test_commands_that_are_reached(command: str) -> None:
    assert unreached(command.split()) is None
