"""Devices, driver, firmware, and what the machine gives to programs."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.probes.ascend import MANAGERS
from npuport.environment.releases import release_key, table_release
from npuport.environment.snapshot import Environment
from npuport.facts import all_releases, chip, chip_family
from npuport.findings import say

_MIB = 1 << 20
_SMALL_SHARED_MEMORY = 1 << 30  # bytes; a container's default is 64 MiB, a machine gives half of its memory
_FEW_OPEN_FILES = 4096


@check("ND100")
def no_npu(env: Environment) -> Iterator[Problem]:
    """Neither PCI bus nor /dev nor a driver shows an NPU."""
    if not env.has_npu:
        yield Problem(
            say("This machine shows no NPU: no PCI device, no /dev/davinci0, no driver."),
            say("On the training machine, run `npuport doctor` again; here, train on the simulated NPU."),
            ("npuport run --sim -- python train.py",),
        )


@check("ND101")
def no_driver(env: Environment) -> Iterator[Problem]:
    """An NPU, but no driver."""
    if env.driver is not None or not env.has_npu:
        return
    if env.system.container:
        yield Problem(
            say("The container has NPU device nodes, but no driver at /usr/local/Ascend/driver."),
            say("Start the container with the host's driver mounted."),
            ("docker run -v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro …",),
        )
    else:
        yield Problem(
            say("The machine has an NPU, but there is no driver at /usr/local/Ascend/driver."),
            say("Install the driver, then the firmware, for this NPU and processor, and reboot."),
        )


@check("ND102")
def npu_smi_without_answer(env: Environment) -> Iterator[Problem]:
    """npu-smi is missing, fails, or does not answer in time."""
    if not env.has_npu or env.smi.state == "ok":
        return
    if env.smi.state == "missing":
        yield Problem(
            say("npu-smi is not on PATH."),
            say("Put it on PATH; into a container, mount it."),
            ("docker run -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi …",)
            if env.system.container
            else ("export PATH=/usr/local/bin:/usr/local/sbin:$PATH",),
        )
    elif env.smi.state == "slow":
        yield Problem(
            say("npu-smi info did not answer in time."),
            say("Ask again with more time; if it never answers, the driver hangs: reset the device or reboot."),
            ("npuport doctor --timeout 30",),
        )
    else:
        yield Problem(
            say("npu-smi info failed: {message}", message=env.smi.message or "no output"),
            say("See the driver's messages; after an installation of the driver, reboot."),
            ("dmesg | grep -i -e davinci -e devdrv", "lsmod | grep drv_davinci"),
        )


@check("ND103")
def npu_not_healthy(env: Environment) -> Iterator[Problem]:
    """A device whose health is not OK."""
    for npu in env.npus:
        if npu.health.lower() not in ("ok", "na"):
            yield Problem(
                say("NPU {number} has health {health}.", number=npu.number, health=npu.health),
                say("Read its error codes, then train on the others or have it repaired."),
                (f"npu-smi info -t health -i {npu.number}",),
            )


@check("ND104")
def firmware_outside_range(env: Environment) -> Iterator[Problem]:
    """The firmware is not among the versions that the driver names."""
    if env.driver is None or not env.firmware or not env.driver.firmware_ranges:
        return
    firmware = release_key(env.firmware)
    if not any(
        release_key(low) <= firmware and firmware[: len(release_key(high))] <= release_key(high)
        for low, high in env.driver.firmware_ranges
    ):
        wanted = ", ".join(f"{low} – {high}" for low, high in env.driver.firmware_ranges)
        yield Problem(
            say(
                "Firmware {firmware} is installed; driver {driver} works with {wanted}.",
                firmware=env.firmware,
                driver=env.driver.version,
                wanted=wanted,
            ),
            say("Install the firmware of the driver's own release, and reboot."),
        )


@check("ND105")
def driver_older_than_cann(env: Environment) -> Iterator[Problem]:
    """The driver is older than the one that documents pair with the CANN in use."""
    if env.driver is None or env.cann is None:
        return
    paired = [one.driver for one in all_releases() if one.driver and one.cann == table_release(env.cann.version)]
    if paired and release_key(env.driver.version) < min(map(release_key, paired)):
        wanted = min(paired, key=release_key)
        yield Problem(
            say(
                "Driver {driver} is older than {wanted}, which documents pair with CANN {cann}.",
                driver=env.driver.version,
                wanted=wanted,
                cann=env.cann.version,
            ),
            say("Upgrade driver and firmware, or install a CANN that this driver serves."),
        )


@check("ND106")
def user_outside_group(env: Environment) -> Iterator[Problem]:
    """The user may not open the devices."""
    if env.user.uid == 0:
        return
    outside = env.driver is not None and env.driver.for_all is False and env.driver.group not in env.user.groups
    # Nodes that may be opened all the same, as in many containers, need no group.
    if env.driver is not None and (env.devices.unusable or (outside and not env.devices.nodes)):
        yield Problem(
            say("User {user} is not in the group {group}.", user=env.user.name, group=env.driver.group)
            if outside
            else say("User {user} may not open {node}.", user=env.user.name, node=env.devices.unusable[0]),
            say("Add the user to the group and log in again, or install the driver with --install-for-all."),
            (f"sudo usermod -aG {env.driver.group} {env.user.name}",),
        )


@check("ND107")
def device_node_missing(env: Environment) -> Iterator[Problem]:
    """Nodes in /dev are missing, usually in a container."""
    if not env.has_npu or (env.driver is None and not env.devices.nodes):
        return
    missing = [f"/dev/{name}" for name in MANAGERS if name not in env.devices.managers]
    if not env.devices.nodes:
        missing.insert(0, "/dev/davinci0")
    if missing:
        devices = " ".join(f"--device {name}" for name in missing)
        yield Problem(
            say("Missing: {nodes}.", nodes=", ".join(missing)),
            say("Start the container with these devices.")
            if env.system.container
            else say("Load the driver again, or reboot."),
            (f"docker run {devices} …",) if env.system.container else (),
        )


@check("ND108")
def small_shared_memory(env: Environment) -> Iterator[Problem]:
    """A container with its small default of shared memory."""
    size = env.system.shared_memory
    if env.has_npu and size is not None and size < _SMALL_SHARED_MEMORY:
        yield Problem(
            say("/dev/shm has {size} MiB.", size=size // _MIB),
            say("Start the container with more shared memory."),
            ("docker run --shm-size=64g …",),
        )


@check("ND109")
def few_open_files(env: Environment) -> Iterator[Problem]:
    """A low limit of open files."""
    if env.has_npu and env.user.open_files is not None and env.user.open_files < _FEW_OPEN_FILES:
        yield Problem(
            say("A process may have {limit} files open.", limit=env.user.open_files),
            say("Raise the limit in the shell that trains."),
            ("ulimit -n 65536",),
        )


@check("ND110")
def inference_chip(env: Environment) -> Iterator[Problem]:
    """A chip that documents do not name for training."""
    for name in env.chips:
        known = chip(name)
        if known is not None and not chip_family(known.family).training:
            yield Problem(
                say("{chip} is a chip for inference.", chip=name),
                say("Train on Atlas A2 or A3 and use this machine for inference."),
            )


@check("ND111")
def bfloat16_on_this_chip(env: Environment) -> Iterator[Problem]:
    """bfloat16 is asked for on a chip without it."""
    lacking = [name for name in env.chips if (known := chip(name)) is not None and not known.bf16]
    if lacking and env.settings.accelerate_precision == "bf16":
        yield Problem(
            say("Accelerate is configured for bf16, and {chip} has no bfloat16.", chip=lacking[0]),
            say("Use float16: in accelerate's configuration, in TrainingArguments, and as torch_dtype of the model."),
            ("accelerate config update", "export ACCELERATE_MIXED_PRECISION=fp16"),
        )


@check("ND112")
def chip_without_bfloat16(env: Environment) -> Iterator[Problem]:
    """A chip without bfloat16: worth knowing before a model is chosen."""
    for name in env.chips:
        known = chip(name)
        if known is not None and not known.bf16 and env.settings.accelerate_precision != "bf16":
            yield Problem(
                say("{chip} has no bfloat16.", chip=name),
                say(
                    "Load models with torch_dtype=torch.float16 whatever config.json says, and let npuport look for it."
                ),
                (f"npuport analyze . --chip {name}",),
            )


@check("ND113")
def chip_unknown_to_torch_npu(env: Environment) -> Iterator[Problem]:
    """A chip whose name the installed torch_npu does not hold."""
    if env.torch_npu is None or not env.torch_npu.complete:
        return
    package = env.package("torch-npu")
    for name in env.chips:
        # npu-smi prints some chips of A3 without their number, which says nothing about torch_npu.
        if chip(name) is not None and name not in env.torch_npu.chips:
            yield Problem(
                say(
                    "torch_npu {version} does not know {chip}.", version=package.version if package else "?", chip=name
                ),
                say(
                    "Install a torch_npu whose release notes name this chip; `npuport doctor --plan` names the newest."
                ),
            )


@check("ND115")
def npu_in_use(env: Environment) -> Iterator[Problem]:
    """Programs that hold memory of an NPU."""
    if env.npu_processes:
        listed = ", ".join(f"{one.name} {one.pid} (NPU {one.npu}, {one.memory} MiB)" for one in env.npu_processes[:8])
        yield Problem(
            say("Programs on the NPUs: {programs}.", programs=listed),
            say("If one is a training that was meant to have ended, end it and wait ten seconds before the next."),
        )
