"""Launch commands of CUDA jobs and what starts the same job on NPUs, one function for each launcher."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from npuport.findings import Sentence, say
from npuport.source.shell import Command, Word

HCCL_PORTS = range(60000, 60032)
"""The ports of the host that HCCL listens on by default (HCCL_IF_BASE_PORT)."""

_WRAPPERS = {"nohup", "time", "exec", "command", "stdbuf", "ionice", "nice", "numactl", "taskset", "env", "sudo"}
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$|\$\{?[A-Z_]*PYTHON[A-Z_]*\}?$")
_TORCHRUN = {"torchrun", "torch.distributed.run", "torch.distributed.launch"}
# mpirun's options with a value that say nothing about the job's shape.
_MPI_WITH_VALUE = {
    *("--bind-to", "--map-by", "--rank-by", "-bind-to", "-map-by", "-rank-by", "--output-filename", "-wdir", "--wdir"),
    *("-genvlist", "-f", "-ppn", "--prefix", "-prefix"),
}
_MPI_PAIRS = {"-mca", "--mca", "-genv"}  # two values each


@dataclass(frozen=True)
class Launch:
    """What a command becomes: its new words, and what a person should know of it.

    ``nodes`` is the number of machines, 0 where the script does not say; ``before`` are lines that must run earlier.
    """

    words: tuple[str, ...]
    notes: tuple[Sentence, ...] = ()
    nodes: int = 1
    before: tuple[str, ...] = ()
    per_node: int | None = None  # processes on a machine, where Slurm started them and torchrun now does

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Context:
    """What a launcher's command stands in: Slurm's numbers from the head of the script."""

    slurm_nodes: int | None = None
    slurm_tasks_per_node: int | None = None
    hosts: dict[str, int] = field(default_factory=dict)


def launch_of(command: Command, context: Context) -> Launch | None:
    """What a command becomes on NPUs; None for one that starts no job, or that stays as it is."""
    start = _first_word(command)
    if start is None:
        return None
    words = command.words[start:]
    head = words[0].text.rpartition("/")[2]
    handler = _LAUNCHERS.get(head)
    if handler is None and _PYTHON.match(words[0].text):
        handler = _of_module(words)
    if handler is None:
        return None
    launch = handler(words, context)
    if launch is None:
        return None
    wrapped = [word.text for word in command.words[:start]]
    assigned = [f"{one.name}={one.word.text if one.word else ''}" for one in command.assignments]
    return replace(launch, words=(*assigned, *wrapped, *launch.words))


def _first_word(command: Command) -> int | None:
    """Where the launcher stands behind nohup, numactl, env and their options."""
    position = 0
    words = command.words
    while position < len(words) and words[position].text in _WRAPPERS:
        position += 1
        while position < len(words) and (words[position].text.startswith("-") or "=" in words[position].text):
            position += 1
    return position if position < len(words) else None


def _of_module(words: Sequence[Word]) -> Callable[[Sequence[Word], Context], Launch | None] | None:
    """The launcher that ``python -m MODULE`` runs."""
    names = [word.text for word in words]
    module = names[names.index("-m") + 1] if "-m" in names[:4] and names.index("-m") + 1 < len(names) else ""
    return _torchrun if module in {"torch.distributed.launch", "torch.distributed.run"} else None


def _torchrun(words: Sequence[Word], _: Context) -> Launch | None:
    """torchrun, and the two modules that it replaces."""
    names = [word.text for word in words]
    at = next((index for index, name in enumerate(names[:5]) if name in _TORCHRUN), 0)
    is_old = names[at] == "torch.distributed.launch"
    use_env = any(name.replace("_", "-") == "--use-env" for name in names)
    notes: list[Sentence] = []
    rest = [word for word in words[at + 1 :] if word.text.replace("_", "-") != "--use-env"]
    texts = [_on_npu(word.text, notes) for word in rest]
    nodes = _number(_option(rest, "nnodes"))
    port = _number(_option(rest, "master_port"))
    if port in HCCL_PORTS:
        notes.append(say("port {port} is one that HCCL listens on by default: choose another", port=port))
    if is_old and not use_env:
        notes.append(say("torchrun hands on no --local_rank: the script reads LOCAL_RANK from the environment"))
    is_module = names[0] != "torchrun" and not is_old
    launcher = names[0] if not is_module and not is_old else "torchrun"
    unchanged = launcher == names[0] and texts == [word.text for word in words[1:]]
    if unchanged and not notes and (nodes or 1) == 1:
        return None
    has_nodes = any(re.match(r"--nnodes", name) for name in names)
    return Launch((launcher, *texts), tuple(notes), nodes if nodes is not None else 0 if has_nodes else 1)


def _on_npu(text: str, notes: list[Sentence]) -> str:
    """``--nproc-per-node=gpu`` asks torchrun for CUDA's devices."""
    changed = re.sub(r"^(--nproc[-_]per[-_]node=)[\"']?gpu[\"']?$", r"\1npu", text)
    if changed != text:
        notes.append(say("one process for each NPU: torchrun knows the device type npu once torch_npu is imported"))
    return changed


def _mpirun(words: Sequence[Word], _: Context) -> Launch | None:
    """mpirun and mpiexec with a Python program become torchrun, on each of the hosts."""
    count, hosts, exported, rest, dropped = _mpi_options(words)
    if not rest or not _PYTHON.match(rest[0].text):
        return None
    program = [word.text for word in rest[1:] if word.text != "-u"]
    notes = [say("programs that read OMPI_COMM_WORLD_RANK, …SIZE and …LOCAL_RANK read RANK, WORLD_SIZE and LOCAL_RANK")]
    if dropped:
        notes.append(say("left out, as torchrun binds nothing: {options}", options=" ".join(dropped)))
    before = tuple(f"export {name}" for name in exported if "=" in name)
    per_host = count if len(hosts) < 2 else next(iter(hosts.values()))
    if len(hosts) < 2:
        shape = ["--standalone", f"--nproc-per-node={per_host or 'npu'}"]
    else:
        if len(set(hosts.values())) > 1:
            return None  # torchrun wants as many processes on each machine
        first = next(iter(hosts))
        shape = [f"--nnodes={len(hosts)}", f"--nproc-per-node={per_host}", '--node-rank="${NODE_RANK:?}"']
        shape += [f"--master-addr={first}", "--master-port=29500"]
        listed = ", ".join(f"{host} (NODE_RANK={number})" for number, host in enumerate(hosts))
        notes.append(say("run this script on each machine: {hosts}", hosts=listed))
    return Launch(("torchrun", *shape, *program), tuple(notes), max(len(hosts), 1), before)


def _mpi_options(words: Sequence[Word]) -> tuple[str, dict[str, int], list[str], Sequence[Word], list[str]]:
    """(processes, hosts with their slots, exported variables, the program, options left out) of an mpirun command."""
    count, hosts, exported, dropped = "", dict[str, int](), list[str](), list[str]()
    position = 1
    while position < len(words) and words[position].text.startswith("-"):
        name = words[position].text
        values = words[position + 1 : position + 3]
        if name in {"-np", "-n", "--np", "--n", "-c"} and values:
            count, position = values[0].text, position + 2
        elif name in {"-H", "--host", "-host", "-hosts"} and values:
            hosts = _hosts(values[0].value or values[0].text)
            position += 2
        elif name in {"-x", "-env"} and values:
            exported.append(values[0].text)
            position += 2
        else:
            width = 3 if name in _MPI_PAIRS else 2 if name in _MPI_WITH_VALUE or name.endswith("hostfile") else 1
            dropped += [word.text for word in words[position : position + width]]
            position += width
    return count, hosts, exported, words[position:], dropped


def _hosts(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in text.split(","):
        host, _, slots = part.partition(":")
        found[host] = found.get(host, 0) + (int(slots) if slots.isdigit() else 1)
    return found


def _srun(words: Sequence[Word], context: Context) -> Launch | None:
    """srun with one task for each device becomes srun with one torchrun for each machine."""
    position = 1
    tasks = context.slurm_tasks_per_node
    kept: list[str] = []
    while position < len(words) and words[position].text.startswith("-"):
        text = words[position].text
        name, _, value = text.partition("=")
        takes_next = name in {"-n", "-N", "-p", "-J", "-w", "-c", "-G", "-o", "-e"} and not value
        value = words[position + 1].text if takes_next and position + 1 < len(words) else value
        if name in {"--ntasks-per-node"} and value.isdigit():
            tasks = int(value)
        elif name not in {
            "-n",
            "--ntasks",
            "-G",
            "--gpus",
            "--gres",
            "--gpus-per-node",
            "--gpus-per-task",
            "--gpu-bind",
        }:
            kept += [name, value] if takes_next else [text]
        position += 2 if takes_next else 1
    program = words[position:]
    if program and program[0].text == "torchrun":
        return _srun_of_torchrun(words[:position], program, context)
    if not program or not _PYTHON.match(program[0].text):
        return None
    arguments = [word.text for word in program[1:] if word.text != "-u"]
    if not arguments or arguments[0].startswith("-m") or arguments[0] == "-c":
        return None
    shape = [
        '--nnodes="$SLURM_NNODES"',
        f"--nproc-per-node={tasks or 'npu'}",
        '--rdzv-id="$SLURM_JOB_ID"',
        "--rdzv-backend=c10d",
        '--rdzv-endpoint="$MASTER_ADDR:29500"',
    ]
    before = (
        'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "export MASTER_ADDR",
    )
    notes = (
        say("programs that read SLURM_PROCID and SLURM_LOCALID read RANK and LOCAL_RANK"),
        say("the name of the resource is your site's: `sinfo -o %G` shows it"),
    )
    started = ("srun", *kept, "--ntasks-per-node=1", "torchrun", *shape, *arguments)
    return Launch(started, notes, context.slurm_nodes or 0, before, tasks)


def _srun_of_torchrun(srun: Sequence[Word], program: Sequence[Word], context: Context) -> Launch:
    """srun with a torchrun for each machine stays, with what torchrun itself needs."""
    inner = _torchrun(program, context)
    started = inner.words if inner is not None else tuple(word.text for word in program)
    nodes = context.slurm_nodes or (inner.nodes if inner is not None else 0)
    return Launch((*(word.text for word in srun), *started), inner.notes if inner is not None else (), nodes)


def _deepspeed(words: Sequence[Word], _: Context) -> Launch | None:
    """DeepSpeed's launcher knows NPUs by itself."""
    several = any(word.text.startswith(("--hostfile", "--num_nodes", "-H")) for word in words)
    if not several:
        return None
    note = say(
        "DeepSpeed before 0.12.6 hands only NCCL* on to other machines: put ASCEND*, HCCL* and LD_LIBRARY_PATH into "
        "~/.deepspeed_env"
    )
    return Launch(tuple(word.text for word in words), (note,), 0)


def _horovod(words: Sequence[Word], _: Context) -> Launch | None:
    """Horovod has no backend for NPUs."""
    note = say("Horovod has no backend for NPUs: port the script to torch.distributed, then start it with torchrun")
    return Launch(tuple(word.text for word in words), (note,))


def _option(words: Sequence[Word], name: str) -> str | None:
    """The value of an option in either spelling, as ``--name=value`` or ``--name value``, where the script says it."""
    spellings = {f"--{name}", f"--{name.replace('_', '-')}"}
    for word, following in zip(words, (*words[1:], None), strict=False):
        key, equals, _ = word.text.partition("=")
        if key in spellings:
            value = word.value if equals else following.value if following is not None else None
            return value.partition("=")[2] if equals and value is not None else value
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


_LAUNCHERS: dict[str, Callable[[Sequence[Word], Context], Launch | None]] = {
    "torchrun": _torchrun,
    "mpirun": _mpirun,
    "mpiexec": _mpirun,
    "srun": _srun,
    "deepspeed": _deepspeed,
    "horovodrun": _horovod,
}
