"""The user's line behind a call, with code compiled under the paths that installed packages have."""

from __future__ import annotations

import threading
from collections.abc import Callable

import npuport
from npuport.sim.call_site import CallSite, call_site

SITE_PACKAGES = "/opt/python/lib/python3.11/site-packages"


def frames(*paths: str) -> Callable[[], CallSite | None]:
    """A function that asks for the call site through one frame for each path, outermost first, each on line 2."""
    inner: Callable[[], CallSite | None] = call_site
    for path in reversed(paths):
        names = {"inner": inner}
        exec(compile("def step():\n    return inner()\n", path, "exec"), names)
        inner = names["step"]
    return inner


def test_the_users_line_behind_torch_and_npuport() -> None:
    inside = (f"{SITE_PACKAGES}/torch/_tensor.py", f"{SITE_PACKAGES}/torch_npu/utils.py", npuport.__file__)
    assert frames("/home/user/train.py", *inside)() == CallSite("/home/user/train.py", 2, "step")


def test_the_librarys_line_is_named_beside_the_users() -> None:
    paths = (f"{SITE_PACKAGES}/{name}" for name in ("lightning/fit.py", "transformers/trainer.py", "torch/_tensor.py"))
    site = frames("/home/user/train.py", *paths)()
    assert site == CallSite("/home/user/train.py", 2, "step", "transformers/trainer.py:2")


def test_the_innermost_of_the_users_lines_counts() -> None:
    site = frames("/home/user/train.py", f"{SITE_PACKAGES}/torch/nn/modules/module.py", "/home/user/model.py")()
    assert str(site) == "/home/user/model.py:2"


def test_a_thread_without_python_stands_for_the_main_thread() -> None:
    found: list[CallSite | None] = []
    thread = threading.Thread(target=lambda: found.append(frames(f"{SITE_PACKAGES}/torch/autograd/engine.py")()))
    # The lambda is a line of this file, so the thread has a user's frame of its own.
    thread.start()
    thread.join()
    assert found[0] is not None and found[0].path == __file__
    only_torch = threading.Thread(target=_append(found, frames(f"{SITE_PACKAGES}/torch/autograd/engine.py")))
    only_torch.start()
    only_torch.join()
    assert (
        found[1] is not None and found[1].function == test_a_thread_without_python_stands_for_the_main_thread.__name__
    )


def _append(found: list[CallSite | None], ask: Callable[[], CallSite | None]) -> Callable[[], None]:
    names = {"found": found, "ask": ask}
    exec(compile("def run():\n    found.append(ask())\n", f"{SITE_PACKAGES}/torch/run.py", "exec"), names)
    return names["run"]
