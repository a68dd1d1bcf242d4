"""Chinese sentences of `npuport launch`."""

from __future__ import annotations

LAUNCH_SENTENCES = {
    "--rank-table takes SERVER=HCCN_CONF, not {text}": "--rank-table 的格式是 SERVER=HCCN_CONF，不是 {text}",
    "ASCEND_RT_VISIBLE_DEVICES wants different numbers in ascending order: {value}": (
        "ASCEND_RT_VISIBLE_DEVICES 需要递增且不重复的编号：{value}"
    ),
    (
        "DeepSpeed before 0.12.6 hands only NCCL* on to other machines: put ASCEND*, HCCL* and LD_LIBRARY_PATH into "
        "~/.deepspeed_env"
    ): ("DeepSpeed 0.12.6 之前只把 NCCL* 传给其他机器：请把 ASCEND*、HCCL* 和 LD_LIBRARY_PATH 写入 ~/.deepspeed_env"),
    "Horovod has no backend for NPUs: port the script to torch.distributed, then start it with torchrun": (
        "Horovod 没有 NPU 后端：请把脚本改为 torch.distributed，再用 torchrun 启动"
    ),
    "give one script, or --devices N and the program after --.": "请给出一个脚本，或 --devices N 与 -- 之后的程序。",
    "left out, as torchrun binds nothing: {options}": "已去掉（torchrun 不做绑定）：{options}",
    "no command that starts a job was found: the script is unchanged": "没有找到启动任务的命令：脚本未改动",
    "nothing sets CANN's environment: source its set_env.sh, unless the shell that starts this did": (
        "没有设置 CANN 环境：请执行它的 set_env.sh，除非启动它的终端已执行"
    ),
    "one process for each NPU: torchrun knows the device type npu once torch_npu is imported": (
        "每个 NPU 一个进程：导入 torch_npu 后 torchrun 认识 npu 设备类型"
    ),
    "port {port} is one that HCCL listens on by default: choose another": (
        "端口 {port} 属于 HCCL 的默认监听端口：请换一个"
    ),
    "processes are started in the background, and nothing waits for them: end the script with `wait`": (
        "进程在后台启动，但没有等待它们：请在脚本末尾加上 `wait`"
    ),
    "programs that read OMPI_COMM_WORLD_RANK, …SIZE and …LOCAL_RANK read RANK, WORLD_SIZE and LOCAL_RANK": (
        "读取 OMPI_COMM_WORLD_RANK、…SIZE、…LOCAL_RANK 的程序改为读取 RANK、WORLD_SIZE、LOCAL_RANK"
    ),
    "programs that read SLURM_PROCID and SLURM_LOCALID read RANK and LOCAL_RANK": (
        "读取 SLURM_PROCID、SLURM_LOCALID 的程序改为读取 RANK、LOCAL_RANK"
    ),
    "run this script on each machine: {hosts}": "在每台机器上运行该脚本：{hosts}",
    "say what to start: npuport launch --nodes 1 --devices 8 -o launch -- train.py --lr 0.1": (
        "请说明要启动什么：npuport launch --nodes 1 --devices 8 -o launch -- train.py --lr 0.1"
    ),
    "several machines need --master-addr: the address of the first, which the others reach": (
        "多台机器需要 --master-addr：第一台机器的、其他机器可达的地址"
    ),
    "start it so: {command}": "请这样启动：{command}",
    "the address {address} stands twice: each device has its own": "地址 {address} 出现两次：每个设备的地址各不相同",
    "the name of the resource is your site's: `sinfo -o %G` shows it": "资源名由所在集群决定：用 `sinfo -o %G` 查看",
    "torchrun hands on no --local_rank: the script reads LOCAL_RANK from the environment": (
        "torchrun 不传递 --local_rank：脚本从环境变量读取 LOCAL_RANK"
    ),
    "torchrun needs no rank table: unset RANK_TABLE_FILE, or be sure that it is right": (
        "torchrun 不需要 rank table：请取消 RANK_TABLE_FILE，或确认其内容正确"
    ),
    "unknown chip {chip}.": "未知芯片 {chip}。",
    "written to {folder}: {names}": "已写入 {folder}：{names}",
    (
        "{chip} has a rank table of another form, with numbers that /etc/hccn.conf does not hold. torchrun needs "
        "none: unset RANK_TABLE_FILE, and the ranks negotiate."
    ): (
        "{chip} 的 rank table 是另一种格式，其中的编号 /etc/hccn.conf 里没有。torchrun 不需要它：取消 RANK_TABLE_FILE，"
        "由各 rank 协商。"
    ),
    "{name} is not read: set {counterpart}": "{name} 不会被读取：请设置 {counterpart}",
    "{name} is read by nothing on an Ascend machine": "{name} 在昇腾机器上无人读取",
    "{path} exists; npuport does not replace it.": "{path} 已存在；npuport 不会替换它。",
    "{path} has no lines address_N=…: it should be a copy of /etc/hccn.conf": (
        "{path} 没有 address_N=… 行：它应是 /etc/hccn.conf 的副本"
    ),
    "{path} is no shell script.": "{path} 不是 shell 脚本。",
    "{processes} processes on a machine, but {devices} devices are visible": (
        "每台机器 {processes} 个进程，但只有 {devices} 个可见设备"
    ),
}
