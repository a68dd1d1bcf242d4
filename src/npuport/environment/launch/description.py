"""The scripts of a job that is described by numbers: one for each machine, or one for Slurm, and the variables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from npuport.environment.launch.script import CANN
from npuport.errors import UserError


@dataclass(frozen=True)
class Job:
    """A job: machines, devices on each, and the program with its arguments, which torchrun starts."""

    nodes: int
    devices: int
    program: tuple[str, ...]
    master_address: str = "127.0.0.1"
    master_port: int = 29500
    interface: str = ""  # the network card between the machines; "" lets HCCL choose


def scripts_of(job: Job, slurm: bool) -> dict[str, str]:
    """The files of a job, by name: ``env.sh`` with the variables, and a script for each machine or for Slurm.

    Raises:
        UserError: a number or an address does not fit.
    """
    _check(job, slurm)
    files = {"env.sh": _env(job)}
    if slurm:
        files["job.sbatch"] = _sbatch(job)
    else:
        for number in range(job.nodes):
            files[f"node-{number}.sh" if job.nodes > 1 else "run.sh"] = _node(job, number)
    return files


def _check(job: Job, slurm: bool) -> None:
    if not job.program:
        raise UserError("say what to start: npuport launch --nodes 1 --devices 8 -o launch -- train.py --lr 0.1")
    if job.nodes > 1 and not slurm and job.master_address in {"127.0.0.1", "localhost", ""}:
        raise UserError("several machines need --master-addr: the address of the first, which the others reach")
    if job.master_port in range(60000, 60032):
        raise UserError("port {port} is one that HCCL listens on by default: choose another", port=job.master_port)


def _env(job: Job) -> str:
    lines = [
        "# shellcheck shell=bash",
        "# Variables of the job, by npuport launch; read this before the job starts.",
        "# `npuport explain NAME` says more of each.",
        "",
        CANN,
        "# Segments that grow, against fragmentation; not together with max_split_size_mb.",
        'export PYTORCH_NPU_ALLOC_CONF="${PYTORCH_NPU_ALLOC_CONF:-expandable_segments:True}"',
        "# Each process on the cores near its NPU.",
        'export CPU_AFFINITY_CONF="${CPU_AFFINITY_CONF:-1}"',
        "# CANN's own logs, where `npuport explain --log` finds them.",
        'export ASCEND_PROCESS_LOG_PATH="${ASCEND_PROCESS_LOG_PATH:-$PWD/logs/plog}"',
        'mkdir -p "$ASCEND_PROCESS_LOG_PATH"',
    ]
    if job.nodes > 1:
        lines += [
            "# Seconds to wait for the other machines to connect: 120 by default, and the first step may take longer.",
            'export HCCL_CONNECT_TIMEOUT="${HCCL_CONNECT_TIMEOUT:-600}"',
            "# Seconds to wait in a collective: 1836 by default; raise it where one rank saves or evaluates for long.",
            'export HCCL_EXEC_TIMEOUT="${HCCL_EXEC_TIMEOUT:-1836}"',
        ]
    if job.interface:
        lines += [
            "# The network card between the machines, for HCCL and for gloo.",
            f"export HCCL_SOCKET_IFNAME={shlex.quote(job.interface)}",
            f"export GLOO_SOCKET_IFNAME={shlex.quote(job.interface)}",
        ]
    return "\n".join(lines) + "\n"


_START = """\
#!/usr/bin/env bash
{head}set -euo pipefail
{here}
# shellcheck disable=SC1091
. "$here/env.sh"
"""


def _node(job: Job, number: int) -> str:
    head = f"# Machine {number} of {job.nodes}, by npuport launch.\n" if job.nodes > 1 else "# By npuport launch.\n"
    here = 'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)'
    shape = ["--standalone"]
    if job.nodes > 1:
        shape = [
            f"--nnodes={job.nodes}",
            f"--node-rank={number}",
            f"--master-addr={shlex.quote(job.master_address)}",
            f"--master-port={job.master_port}",
        ]
    return _START.format(head=head, here=here) + _torchrun(job, shape)


def _sbatch(job: Job) -> str:
    head = (
        "# By npuport launch. The name of the resource is your site's: `sinfo -o %G` shows it.\n"
        f"#SBATCH --nodes={job.nodes}\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=npu:{job.devices}\n"
    )
    # Slurm runs a copy of the script: its own folder is not where it was written.
    here = 'here="$SLURM_SUBMIT_DIR"'
    address = 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\nexport MASTER_ADDR\n'
    shape = [
        f"--nnodes={job.nodes}",
        '--rdzv-id="$SLURM_JOB_ID"',
        "--rdzv-backend=c10d",
        f'--rdzv-endpoint="$MASTER_ADDR:{job.master_port}"',
    ]
    return _START.format(head=head, here=here) + address + "srun " + _torchrun(job, shape)


def _torchrun(job: Job, shape: Sequence[str]) -> str:
    options = [*shape, f"--nproc-per-node={job.devices}", "--log-dir=logs", "--tee=3"]
    lines = [f"torchrun {options[0]}", *options[1:], " ".join(shlex.quote(word) for word in job.program)]
    return " \\\n  ".join(lines) + "\n"
