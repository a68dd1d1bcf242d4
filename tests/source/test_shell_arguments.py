"""Arguments of Python programs in shell scripts: variables, arrays and sums are filled in as far as the script says."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from npuport.source.shell_arguments import options, python_programs

SCRIPT = """\
#!/bin/bash
NPUS_PER_NODE=8  # of one machine
NNODES=${NNODES:-2}
WORLD_SIZE=$(($NPUS_PER_NODE*NNODES))
LR="1.25e-6"
DISTRIBUTED="
    --nproc_per_node $NPUS_PER_NODE \\
    --nnodes $NNODES
"
ARGS=(
    --num-layers 32  # a comment
    --lr ${LR}
    --global-batch-size $((WORLD_SIZE * 4))
    --data-path $DATA
    --name 'two words'
)
ARGS+=(--bf16)
torchrun $DISTRIBUTED train.py "${ARGS[@]}" --min-lr=-1 | tee log.txt
"""


def test_what_the_script_says_is_filled_in() -> None:
    [command] = python_programs(SCRIPT)
    assert (command.line, command.program) == (18, "train.py")
    assert options(command.launcher) == {"nproc_per_node": "8", "nnodes": "2"}
    assert options(command.words) == {
        "num_layers": "32",
        "lr": "1.25e-6",
        "global_batch_size": "64",
        "data_path": "$DATA",
        "name": "two words",
        "bf16": "",
        "min_lr": "-1",
    }


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_shell_gives_the_same_arguments() -> None:
    echoed = SCRIPT.replace("torchrun", "DATA=; printf '%s\\n' torchrun").replace(" | tee log.txt", "")
    words = subprocess.run(["bash", "-c", echoed], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    [command] = python_programs(SCRIPT.replace(" $DATA\n", "\n"))
    assert words == [*command.launcher, command.program, *command.words]


def test_what_a_variable_is_in_doubt_stays_unknown() -> None:
    [command] = python_programs(
        'if [ "$1" = big ]; then\n  TP=8\nelse\n  TP=1\nfi\npython pretrain_gpt.py --tensor-model-parallel-size $TP\n'
    )
    assert options(command.words) == {"tensor_model_parallel_size": "$TP"}


def test_programs_that_are_only_named_are_not_started() -> None:
    assert python_programs("cp train.py other/\necho train.py\n# python train.py --lr 1\n") == []
