"""What CUDA code relies on, one function each: it returns where the code behaves as on CUDA, and raises where not.

Written as users write it, for CUDA. `runner.py` loads it through npuport, or after `torch_npu.contrib.transfer_to_npu`.
"""

import contextlib
import copy
import io
import os
import pickle
import tempfile
import warnings
from pathlib import Path

import early
import torch
from torch import nn

SPELT = "".join(["cu", "da"])  # as from a command line or a settings file: no conversion of source sees it


def tensor():
    return torch.ones(2, 3, device="cuda")


def folder_of_cuda():
    folder = Path(tempfile.mkdtemp()) / "cuda_dir"
    folder.mkdir()
    return folder


# -- devices


def device_from_string():
    assert tensor().device.type == torch.device("cuda").type


def device_from_number():
    assert torch.device(0) == tensor().device


def zeros_on_device_object():
    assert torch.zeros(1, device=torch.device("cuda")).device == tensor().device


def device_type_is_cuda():
    assert tensor().device.type == "cuda"


def device_equals_first_device():
    assert tensor().device == torch.device("cuda:0")


def device_text_starts_with_cuda():
    assert str(tensor().device).startswith("cuda")


def is_cuda_of_a_device_tensor():
    assert tensor().is_cuda


def is_cuda_of_a_cpu_tensor():
    assert not torch.ones(1).is_cuda


def is_cuda_of_a_storage():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert tensor().storage().is_cuda


def device_is_a_torch_device():
    assert isinstance(torch.device("cuda"), torch.device)
    assert isinstance(tensor().device, torch.device)


# -- making tensors


def early_bound_zeros():
    assert early.zeros(1, device="cuda").is_cuda


def asarray_on_device():
    assert torch.asarray([1.0], device="cuda").is_cuda


def empty_permuted_on_device():
    assert torch.empty_permuted((2, 3), (1, 0), device="cuda").is_cuda


def window_on_device():
    assert torch.signal.windows.hann(4, device="cuda").is_cuda


def nested_tensor_on_device():
    assert torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="cuda").is_cuda


def sparse_block_rows_on_device():
    blocks = torch.sparse_bsr_tensor([0, 1], [0], torch.ones(1, 2, 2), size=(2, 2), device="cuda")
    assert blocks.values().is_cuda


def module_on_device():
    assert nn.Linear(2, 2, device="cuda").weight.is_cuda


def new_tensor_on_device():
    assert torch.ones(1).new_tensor([1.0], device="cuda").is_cuda


def double_precision_stays():
    assert torch.zeros(1, dtype=torch.float64, device="cuda").dtype == torch.float64


def double_method_stays():
    assert tensor().double().dtype == torch.float64


def default_device():
    torch.set_default_device("cuda")
    assert torch.ones(1).is_cuda


def device_as_context():
    with torch.device("cuda"):
        assert torch.ones(1).is_cuda


def default_tensor_type_by_name():
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    assert torch.zeros(1).is_cuda


def default_tensor_type_by_class():
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
    assert torch.zeros(1).is_cuda


def typed_constructor():
    made = torch.cuda.FloatTensor([1, 2])
    assert made.is_cuda
    assert made.tolist() == [1, 2]


def typed_constructor_of_doubles():
    assert torch.cuda.DoubleTensor([1]).dtype == torch.float64


def typed_constructor_of_longs():
    made = torch.cuda.LongTensor([1, 2])
    assert made.is_cuda
    assert made.dtype == torch.int64


def isinstance_of_typed_tensor():
    assert isinstance(tensor(), torch.cuda.FloatTensor)


# -- moving tensors


def to_number():
    assert torch.ones(1).to(0).is_cuda


def to_string_without_blocking():
    assert torch.ones(1).to("cuda:0", non_blocking=True).is_cuda


def cuda_method():
    assert torch.ones(1).cuda().is_cuda


def cuda_method_with_string():
    assert torch.ones(1).cuda("cuda:0").is_cuda


def cuda_method_with_device():
    assert torch.ones(1).cuda(torch.device("cuda:0")).is_cuda


def cuda_method_with_keywords():
    assert torch.ones(1).cuda(device=0, non_blocking=True).is_cuda


def type_by_class():
    assert torch.ones(1).type(torch.cuda.FloatTensor).is_cuda


def type_by_name():
    assert torch.ones(1).type("torch.cuda.FloatTensor").is_cuda


def name_of_the_type():
    assert tensor().type() == "torch.cuda.FloatTensor"


def to_itself_is_itself():
    x = tensor()
    assert x.to("cuda") is x


def module_cuda_method():
    assert nn.Linear(2, 2).cuda().weight.is_cuda


def module_to_empty():
    assert nn.Linear(2, 2, device="meta").to_empty(device="cuda").weight.is_cuda


def deepcopy_stays_on_device():
    assert copy.deepcopy(tensor()).is_cuda


def pickled_device():
    assert pickle.loads(pickle.dumps(torch.device("cuda:0"))) == tensor().device


# -- what the machine has


def is_available():
    assert torch.cuda.is_available()


def device_count():
    assert torch.cuda.device_count() >= 1


def current_device():
    assert torch.cuda.current_device() == 0


def device_capability():
    assert torch.cuda.get_device_capability() >= (7, 0)


def device_capability_at_least_8():
    assert torch.cuda.get_device_capability()[0] >= 8


def device_properties():
    found = torch.cuda.get_device_properties(0)
    assert found.total_memory > 0
    assert found.name


def multi_processor_count():
    assert torch.cuda.get_device_properties(0).multi_processor_count > 0


def major_of_properties():
    assert torch.cuda.get_device_properties(0).major >= 7


def version_of_cuda():
    assert torch.version.cuda is not None


def architectures():
    assert isinstance(torch.cuda.get_arch_list(), list)


def bfloat16_supported():
    assert torch.cuda.is_bf16_supported()


def name_looked_up_at_run_time():
    assert getattr(torch.cuda, "is_" + "available")()


def module_as_a_value():
    device_module = torch.cuda
    assert device_module.is_available()
    assert device_module.device_count() >= 1


def cuda_home():
    from torch.utils.cpp_extension import CUDA_HOME

    assert CUDA_HOME is None or os.path.isdir(CUDA_HOME)


def current_accelerator():
    assert torch.accelerator.current_accelerator().type == "cuda"


def count_of_the_private_module():
    assert torch._C._cuda_getDeviceCount() >= 1


def lazy_init():
    torch.cuda._lazy_init()


def init():
    torch.cuda.init()
    assert torch.cuda.is_initialized()


# -- flags


def cudnn_available():
    assert torch.backends.cudnn.is_available()


def cudnn_version():
    assert torch.backends.cudnn.version() is not None


def cudnn_benchmark():
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True


def tf32_of_products():
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cuda.matmul.allow_tf32


def attention_backends():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    x = torch.ones(1, 2, 4, 16, device="cuda", dtype=torch.float16)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert torch.nn.functional.scaled_dot_product_attention(x, x, x).is_cuda


def flash_attention_enabled():
    assert torch.backends.cuda.flash_sdp_enabled()


# -- tools


def nvtx_ranges():
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("step"):
        pass


def nccl_version():
    assert torch.cuda.nccl.version()


def cudart_profiler():
    torch.cuda.cudart().cudaProfilerStart()
    torch.cuda.cudart().cudaProfilerStop()


def cuda_profiler():
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()


def memory_summary():
    assert "llocated" in torch.cuda.memory_summary()


def memory_numbers():
    keep = torch.ones(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() >= 4 << 20
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() > 0
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    del keep


def memory_left():
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def processes_on_the_device():
    assert isinstance(torch.cuda.list_gpu_processes(), str)


def temperature():
    assert isinstance(torch.cuda.temperature(), int)


def utilization():
    assert 0 <= torch.cuda.utilization() <= 100


def profiler_with_cuda():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.profiler.profile(use_cuda=True) as profile:
            tensor().sum()
    assert profile.key_averages()


def profiler_activity():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        tensor().sum()
    assert found.key_averages()


def profiler_is_a_class():
    assert isinstance(torch.profiler.profile, type)


# -- streams and events


def stream_on_device_by_name():
    torch.cuda.Stream(device="cuda:0").synchronize()


def stream_on_device_by_number():
    torch.cuda.Stream(device=0).synchronize()


def stream_of_torch():
    torch.Stream(device="cuda").synchronize()


def event_times():
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    end.record()
    torch.cuda.synchronize()
    assert begin.elapsed_time(end) >= 0


def event_of_torch():
    event = torch.Event(device="cuda")
    event.record()
    assert isinstance(event, torch.Event)


def stream_as_context():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
    torch.cuda.current_stream().wait_stream(stream)


def set_device_by_name():
    torch.cuda.set_device("cuda:0")


def device_context_by_name():
    with torch.cuda.device("cuda:0"):
        assert torch.cuda.current_device() == 0


def synchronize_by_name():
    torch.cuda.synchronize("cuda:0")


def device_of_a_tensor():
    with torch.cuda.device_of(tensor()):
        assert torch.cuda.current_device() == 0


def captured_graph_is_refused_or_works():
    graph = torch.cuda.CUDAGraph()
    x = tensor()
    with torch.cuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.is_cuda


def pluggable_allocator_exists():
    assert isinstance(torch.cuda.memory.CUDAPluggableAllocator, type)


def broadcast_over_devices():
    from torch.cuda import comm

    assert len(comm.broadcast(tensor(), devices=[0])) == 1


# -- random numbers


def generator_by_position():
    generator = torch.Generator("cuda").manual_seed(1)
    assert torch.rand(2, device="cuda", generator=generator).is_cuda


def generator_by_keyword():
    generator = torch.Generator(device="cuda").manual_seed(1)
    assert torch.randn(2, device="cuda", generator=generator).is_cuda


def default_generator_is_a_generator():
    assert isinstance(torch.default_generator, torch.Generator)


def type_of_a_generator():
    assert type(torch.Generator()) is torch.Generator


def pickled_class_of_generator():
    assert pickle.loads(pickle.dumps(torch.Generator)) is torch.Generator


def forked_random_numbers():
    torch.cuda.manual_seed_all(3)
    with torch.random.fork_rng(devices=[0]):
        first = torch.rand(3, device="cuda")
    assert torch.equal(first, torch.rand(3, device="cuda"))


def state_of_random_numbers():
    state = torch.cuda.get_rng_state()
    first = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(3, device="cuda"))


def states_of_all_devices():
    states = torch.cuda.get_rng_state_all()
    first = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state_all(states)
    assert torch.equal(first, torch.rand(3, device="cuda"))


def same_seed_same_numbers():
    torch.manual_seed(5)
    first = torch.rand(3, device="cuda")
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(3, device="cuda"))


# -- mixed precision


def autocast_by_name():
    with torch.autocast("cuda", dtype=torch.float16):
        assert (tensor() @ tensor().T).dtype == torch.float16


def autocast_of_the_cuda_module():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.cuda.amp.autocast():
            assert (tensor() @ tensor().T).dtype == torch.float16


def autocast_state():
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")


def autocast_dtype():
    assert torch.get_autocast_dtype("cuda") == torch.float16


def scaler_of_the_cuda_module():
    _scaled_step(torch.cuda.amp.GradScaler())


def scaler_of_amp():
    _scaled_step(torch.amp.GradScaler("cuda"))


def scale_stays_on_device():
    assert torch.amp.GradScaler("cuda").scale(tensor()).is_cuda


def _scaled_step(scaler):
    weight = torch.ones(3, device="cuda", requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler.scale((weight * 2).sum()).backward()
    scaler.unscale_(optimizer)
    assert torch.equal(weight.grad, torch.full((3,), 2.0, device="cuda"))
    scaler.step(optimizer)
    scaler.update()
    assert torch.allclose(weight, torch.full((3,), 0.8, device="cuda"))


def custom_forward():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(2, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


# -- files


def load_from_a_path_with_cuda():
    file = folder_of_cuda() / "checkpoint.pt"
    torch.save(torch.ones(1), file)
    assert torch.load(str(file)).item() == 1


def load_by_keyword_from_a_path_with_cuda():
    file = folder_of_cuda() / "checkpoint.pt"
    torch.save(torch.ones(1), file)
    assert torch.load(f=str(file)).item() == 1


def _saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def load_to_device_by_name():
    assert torch.load(_saved(torch.ones(1)), map_location="cuda:0").is_cuda


def load_to_device_by_function():
    assert torch.load(_saved(torch.ones(1)), map_location=lambda storage, place: storage.cuda(0)).is_cuda


def load_to_device_by_table():
    assert torch.load(_saved(tensor()), map_location={"cuda:1": "cuda:0"}).is_cuda


def load_to_device_by_object():
    assert torch.load(_saved(torch.ones(1)), map_location=torch.device("cuda")).is_cuda


def load_what_cuda_saved():
    """A checkpoint written on a CUDA machine: its storages say cuda:0."""
    import zipfile

    plain, from_cuda = _saved({"weight": torch.ones(3)}), io.BytesIO()
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(from_cuda, "w", zipfile.ZIP_STORED) as target:
        for item in source.infolist():
            data = source.read(item)
            if item.filename.endswith("data.pkl"):
                short = b"X\x03\x00\x00\x00cpu"
                assert short in data
                data = data.replace(short, b"X\x06\x00\x00\x00" + SPELT.encode() + b":0")
            target.writestr(item, data)
    from_cuda.seek(0)
    loaded = torch.load(from_cuda)
    assert loaded["weight"].is_cuda
    assert loaded["weight"].tolist() == [1, 1, 1]


def save_and_load():
    assert torch.load(_saved({"x": tensor()}))["x"].is_cuda


# -- torch.jit, torch.compile


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


def scripted_module():
    assert isinstance(torch.jit.script(Doubled()), torch.jit.ScriptModule)


def scripted_module_is_saved():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Doubled()), file)
    file.seek(0)
    assert torch.jit.load(file, map_location="cuda")(tensor()).is_cuda


def traced_module():
    assert torch.jit.trace(Doubled(), tensor())(tensor()).is_cuda


def compiled_module():
    assert torch.compile(Doubled())(tensor()).is_cuda


# -- data


def loader_pins_memory():
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(4.0))
    for (batch,) in DataLoader(data, batch_size=2, pin_memory=True):
        assert batch.is_pinned()
        assert batch.cuda(non_blocking=True).is_cuda


def loader_pins_memory_for_device():
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(4.0))
    assert len(list(DataLoader(data, batch_size=2, pin_memory=True, pin_memory_device="cuda"))) == 2


def pin_memory_for_device():
    assert torch.ones(1).pin_memory("cuda").is_pinned()


def is_pinned_for_device():
    assert torch.ones(1).pin_memory().is_pinned("cuda")


def channels_last_tensor():
    x = torch.empty(1, 2, 3, 3, device="cuda", memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)


def channels_last_model():
    nn.Conv2d(2, 2, 3).cuda().to(memory_format=torch.channels_last)


# -- several devices


def data_parallel_on_one_device():
    model = nn.DataParallel(nn.Linear(3, 1).cuda(), device_ids=[0])
    assert model(tensor()).is_cuda


def nccl_is_available():
    assert torch.distributed.is_nccl_available()


@contextlib.contextmanager
def _process_group(**keywords):
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as directory:
        dist.init_process_group("nccl", init_method=f"file://{directory}/store", rank=0, world_size=1, **keywords)
        try:
            yield dist
        finally:
            dist.destroy_process_group()


def process_group_over_nccl():
    with _process_group() as dist:
        x = tensor()
        dist.all_reduce(x)
        assert x.tolist() == tensor().tolist()


def backend_is_nccl():
    with _process_group() as dist:
        assert dist.get_backend() == "nccl"


def process_group_with_device():
    with _process_group(device_id=torch.device("cuda:0")) as dist:
        dist.barrier()


def process_group_in_a_folder_of_cuda():
    import torch.distributed as dist

    dist.init_process_group("nccl", init_method=f"file://{folder_of_cuda()}/store", rank=0, world_size=1)
    dist.barrier()
    dist.destroy_process_group()


def distributed_model():
    with _process_group():
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1).cuda(), device_ids=[0], output_device=0)
        model(tensor()).sum().backward()
        assert model.module.weight.grad.is_cuda


# -- errors


def out_of_memory_is_caught_by_class():
    try:
        torch.empty(1 << 50, dtype=torch.int8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return
    raise AssertionError("no error")


def out_of_memory_is_caught_by_message():
    try:
        torch.empty(1 << 50, dtype=torch.int8, device="cuda")
    except RuntimeError as error:
        if "CUDA out of memory" not in str(error):
            raise
        return
    raise AssertionError("no error")


# -- devices that are spelt at run time


def run_time_zeros():
    assert torch.zeros(2, device=SPELT).is_cuda


def run_time_device_object():
    assert torch.zeros(2, device=torch.device(SPELT)).is_cuda


def run_time_device_equals():
    assert torch.device(SPELT, 0) == tensor().device


def run_time_random():
    assert torch.randn(2, device=f"{SPELT}:0").is_cuda


def run_time_to():
    assert torch.ones(2).to(SPELT).is_cuda


def run_time_to_itself_is_itself():
    x = tensor()
    assert x.to(SPELT) is x


def run_time_module_to():
    assert nn.Linear(2, 2).to(SPELT).weight.is_cuda


def run_time_index():
    assert torch.ones(2).cuda(int("0")).is_cuda


def run_time_branch():
    device = torch.device(SPELT if torch.cuda.is_available() else "cpu")
    taken = device.type == "cuda"
    assert taken


def run_time_autocast():
    with torch.autocast(SPELT):
        assert (tensor() @ tensor().T).dtype == torch.float16


def run_time_scaler():
    _scaled_step(torch.amp.GradScaler(SPELT))


def run_time_generator():
    generator = torch.Generator(device=SPELT).manual_seed(1)
    assert torch.rand(2, device=SPELT, generator=generator).is_cuda


def run_time_map_location():
    assert torch.load(_saved(torch.ones(1)), map_location=SPELT).is_cuda


def run_time_backend():
    import torch.distributed as dist

    backend = "".join(["nc", "cl"])
    with tempfile.TemporaryDirectory() as directory:
        dist.init_process_group(backend, init_method=f"file://{directory}/store", rank=0, world_size=1)
        x = tensor()
        dist.all_reduce(x)
        dist.destroy_process_group()


def run_time_default_device():
    torch.set_default_device(SPELT)
    assert torch.ones(1).is_cuda


def run_time_device_context():
    with torch.device(SPELT):
        assert torch.ones(1).is_cuda


def run_time_set_device():
    torch.cuda.set_device(torch.device(SPELT, 0))


def run_time_new_tensor():
    assert tensor().new_zeros(2, device=SPELT).is_cuda


def run_time_device_module():
    assert torch.get_device_module(SPELT).device_count() >= 1


def run_time_parameter():
    weight = nn.Parameter(torch.ones(3, device=SPELT))
    (weight * 2).sum().backward()
    assert weight.grad.is_cuda
