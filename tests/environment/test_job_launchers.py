"""Launchers of CUDA jobs, and what `npuport launch` makes of them: as expected, well formed, and able to start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from npuport.environment.launch.check import check_script
from npuport.environment.launch.description import Job, scripts_of
from npuport.environment.launch.rank_table import device_addresses, rank_table
from npuport.environment.launch.script import convert_script
from npuport.errors import UserError
from npuport.facts import chip
from npuport.source.shell import read_script

LAUNCHERS = Path(__file__).parent / "launchers"
SCRIPTS = sorted(path.name for path in LAUNCHERS.iterdir() if path.is_file())
SHELLCHECK = Path(sys.executable).with_name("shellcheck")

TRAIN = """\
import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
steps = parser.parse_args().steps
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
total = torch.ones(1, device="cuda")
for _ in range(steps):
    dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item()} on {total.device.type}")
"""


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run where `python` and `torchrun` are those of this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inside = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=folder, env=inside, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def well_formed(script: Path) -> None:
    done = subprocess.run([SHELLCHECK, "--severity=warning", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_made_is_well_formed_and_stays_as_it_is(name: str) -> None:
    expected = LAUNCHERS / "expected" / name
    well_formed(expected)
    assert convert_script(expected.read_text(encoding="utf-8")).text == expected.read_text(encoding="utf-8")


@pytest.mark.sim
@pytest.mark.parametrize(
    "name", ["launch_use_env.sh", "launch_local_rank.sh", "torchrun_gpu.sh", "mpirun_one_host.sh", "loop.sh"]
)
def test_what_is_made_starts_on_the_simulated_npu(name: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    shutil.copy(LAUNCHERS / "expected" / name, tmp_path)
    command = [sys.executable, "-m", "npuport", "run", "--sim", "--devices", "2", "--", "bash", name]
    done = run(command, tmp_path)
    assert "rank 0 of 2: 4.0 on npu" in done.stdout
    assert "rank 1 of 2: 4.0 on npu" in done.stdout


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("slurm", [False, True])
def test_scripts_from_a_description(nodes: int, slurm: bool, tmp_path: Path) -> None:
    job = Job(nodes, 8, ("train.py", "--name", "a b"), "10.0.0.1", interface="eth0")
    files = scripts_of(job, slurm)
    starts = {"job.sbatch"} if slurm else {f"node-{n}.sh" for n in range(nodes)} if nodes > 1 else {"run.sh"}
    assert set(files) == {"env.sh", *starts}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        well_formed(tmp_path / name)
        assert check_script(text) == () or name != "env.sh"
    assert all("'a b'" in files[name] for name in starts)
    assert ("HCCL_CONNECT_TIMEOUT" in files["env.sh"]) == (nodes > 1)


@pytest.mark.sim
def test_a_described_job_starts_on_the_simulated_npu(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    for name, text in scripts_of(Job(1, 2, ("train.py", "--steps", "2")), slurm=False).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "npuport", "run", "--sim", "--devices", "2", "--", "bash", "run.sh"]
    done = run(command, tmp_path)
    assert "rank 1 of 2: 4.0 on npu" in done.stdout
    assert list((tmp_path / "logs").rglob("stdout.log"))


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Job(2, 8, ("train.py",)), "--master-addr"),
        (Job(1, 8, ()), "say what to start"),
        (Job(1, 8, ("train.py",), master_port=60001), "60001"),
    ],
)
def test_a_description_that_does_not_fit_is_one_clear_error(job: Job, words: str) -> None:
    with pytest.raises(UserError, match=words):
        scripts_of(job, slurm=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("export NCCL_SOCKET_IFNAME=eth0\n", "set HCCL_SOCKET_IFNAME"),
        ("export NCCL_IB_GID_INDEX=3\n", "NCCL_IB_GID_INDEX is read by nothing"),
        ("export ASCEND_RT_VISIBLE_DEVICES=1,0\n", "ascending order"),
        ("export ASCEND_RT_VISIBLE_DEVICES=0,1\ntorchrun --nproc-per-node=4 a.py\n", "4 processes on a machine, but 2"),
        ("python -m torch.distributed.launch --use_env a.py\n", "start it so: torchrun a.py"),
        ("torchrun --master-port=60003 a.py\n", "port 60003"),
        ("torchrun a.py\n", "set_env.sh"),
        ("export RANK_TABLE_FILE=r.json\ntorchrun a.py\n", "needs no rank table"),
        ("for i in 0 1; do\n  python a.py &\ndone\n", "`wait`"),
    ],
)
def test_check_names_what_is_wrong(text: str, words: str) -> None:
    assert any(words in str(note.text) for note in check_script(text))


def test_check_has_nothing_to_say_of_a_good_launcher() -> None:
    text = "source /usr/local/Ascend/cann/set_env.sh\nexport HCCL_CONNECT_TIMEOUT=600\n"
    text += "ASCEND_RT_VISIBLE_DEVICES=0,1 torchrun --standalone --nproc-per-node=2 train.py\n"
    assert check_script(text) == ()


def test_words_of_commands_that_are_not_launched_stay() -> None:
    text = "#!/bin/bash\n# torchrun --nproc_per_node=gpu old.py\necho 'mpirun -np 2 python a.py'\n"
    text += "cat <<EOF\nsrun python b.py\nEOF\n"
    assert convert_script(text).text == text


def test_values_that_a_script_writes_out_are_known() -> None:
    script = read_script('N=4\nM=$(nproc)\nX="a${N}"\nN2=$N\ntorchrun --nproc-per-node=$N2 "$X" $M\n')
    assert script.variables == {"N": "4", "X": "a4", "N2": "4"}
    assert [word.value for word in script.commands[-1].words] == ["torchrun", "--nproc-per-node=4", "a4", None]


def test_rank_table_of_two_machines() -> None:
    first = device_addresses("address_0=192.168.1.8\nnetmask_0=255.255.0.0\naddress_1=192.168.1.9\n", "a")
    second = device_addresses("address_1=192.168.2.9\naddress_0=192.168.2.8\n", "b")
    known = chip("Ascend910B3")
    assert known is not None
    table = rank_table({"node_0": first, "node_1": second}, known)
    assert json.loads(json.dumps(table)) == table
    assert table["version"] == "1.0"
    assert table["server_count"] == "2"
    devices = [device for server in table["server_list"] for device in server["device"]]
    assert [device["rank_id"] for device in devices] == ["0", "1", "2", "3"]
    assert devices[2] == {"device_id": "0", "device_ip": "192.168.2.8", "rank_id": "2"}


def test_rank_tables_that_cannot_be_made() -> None:
    a2, a3 = chip("Ascend910B3"), chip("Ascend910_9391")
    assert a2 is not None
    assert a3 is not None
    with pytest.raises(UserError, match="stands twice"):
        rank_table({"a": {0: "10.0.0.1"}, "b": {0: "10.0.0.1"}}, a2)
    with pytest.raises(UserError, match="another form"):
        rank_table({"a": {0: "10.0.0.1"}}, a3)
    with pytest.raises(UserError, match=r"hccn\.conf"):
        device_addresses("nothing", "hccn.conf")
