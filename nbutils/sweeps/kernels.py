"""Kernels for headless runs: private sockets, warm starts, gone when the process that uses them is gone."""

from __future__ import annotations

import atexit
import gc
import math
import os
import random
import signal
import sys
import threading
import time
import traceback
import weakref
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import numpy as np
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from nbutils.support.files import remove_folder

LOG = "kernel.log"  # beside the connection file: what a kernel writes past its notebook
# Forked by `fork_kernel` and waiting for its connection file: (process id, pipe to tell it).
_waiting: list[tuple[int, int]] = []


def _eager(context: Any) -> Any:
    """A ZeroMQ context whose sockets, where they come before the kernel listens, try again after 3 ms, not 100."""
    context.reconnect_ivl = 3
    return context


class _Client(AsyncKernelClient):
    """Does not wait for 0.2 s of silence once the kernel is ready, as others do: messages of its start harm nobody."""

    def _context_default(self) -> Any:
        return _eager(super()._context_default())

    async def _async_wait_for_ready(self, timeout: float | None = None) -> None:
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        while True:
            self.kernel_info()
            with suppress(Empty):
                reply = await self.shell_channel.get_msg(timeout=1)
                await self.iopub_channel.get_msg(timeout=0.2)  # what cells print will arrive as well
                self._handle_kernel_info_reply(reply)
                return
            if not await self.is_alive():
                raise RuntimeError("Kernel died before it was ready")
            if time.monotonic() > deadline:
                raise RuntimeError(f"Kernel was not ready after {timeout:g} s")

    wait_for_ready = _async_wait_for_ready


class PrivateKernelManager(AsyncKernelManager):
    """A kernel that talks over sockets in a folder of its own.

    Kernels started at the same time can draw the same TCP port (papermill issue 511); files in a private folder cannot
    clash, and nobody else on the machine can connect to them. :func:`kernel_manager` makes classes with a folder.
    """

    folder: Path

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        private = {"connection_file": str(self.folder / "kernel.json")}
        if sys.platform != "win32":  # which has no such sockets
            private |= {"transport": "ipc", "ip": str(self.folder / "s")}
        super().__init__(*args, **private, **kwargs)
        _eager(self.context)

    def _client_factory_default(self) -> type[_Client]:
        return _Client

    async def _async_interrupt_kernel(self) -> None:
        """Do nothing: the manager interrupts before it shuts down, and a kernel hit while replying forgets to end."""

    async def _async_finish_shutdown(
        self, waittime: float | None = None, pollinterval: float = 0.002, restart: bool = False
    ) -> None:
        """As usual, but look every 2 ms, not every 100."""
        await super()._async_finish_shutdown(waittime, pollinterval, restart)


class WarmKernelManager(PrivateKernelManager):
    """A Python kernel that was forked ahead by :func:`fork_kernel`, with everything imported."""

    async def _async_pre_start_kernel(self, **kwargs: Any) -> Any:
        if self.provisioner is None:
            self.provisioner = _WarmProvisioner(kernel_id="warm", kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**kwargs)


class _WarmProvisioner(LocalProvisioner):
    """Hands the connection file to the waiting kernel instead of starting an interpreter."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        pid, pipe = _waiting.pop()
        # The pipe stays open as long as this process lives: its end tells the kernel to end.
        self.process, self.pid, self.pgid, self.cwd = _Forked(pid), pid, pid, Path.cwd()
        try:
            os.write(pipe, b"".join(os.fsencode(path) + b"\0" for path in (self.parent.connection_file, self.cwd)))
        except BrokenPipeError:
            raise RuntimeError("Kernel died while it waited to be used") from None
        return self.connection_info


class _Forked:
    """A forked child with the part of `subprocess.Popen` that kernel managers use."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def kernel_manager(folder: Path, python: bool) -> type[PrivateKernelManager]:
    """Class of a kernel manager, as notebook clients want one.

    Args:
        folder: where sockets and connection file go; short enough a path for sockets.
        python: whether a kernel that was forked ahead may serve; if none waits, a cold one starts.

    Returns:
        The class; its kernel starts warm where that is possible.
    """
    base = WarmKernelManager if python and _waiting else PrivateKernelManager
    return type(base.__name__, (base,), {"folder": folder})


def fork_kernel() -> None:
    """Fork a kernel that waits to be used, while this process has a single thread; does nothing on Windows."""
    if not hasattr(os, "fork"):
        return
    gc.freeze()  # else a collection in the kernel, at its end at the latest, walks and so copies all that is imported
    mine, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(theirs)
        _become_kernel(mine)  # never returns
    os.close(mine)
    _waiting.append((pid, theirs))


def _become_kernel(pipe: int) -> None:
    """The life of a forked kernel: wait for a connection file, serve it, end when told or when the parent is gone."""
    code = 1
    try:
        os.setsid()
        message = b""
        while message.count(b"\0") < 2:
            part = os.read(pipe, 4096)
            if not part:
                os._exit(0)  # not needed after all
            message += part
        file, folder, _ = message.split(b"\0")
        os.chdir(folder)
        log = os.open(Path(os.fsdecode(file)).with_name(LOG), os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        threading.Thread(target=_end_with_parent, args=(pipe, Path(os.fsdecode(file)).parent), daemon=True).start()
        _forget_the_past()
        from ipykernel.kernelapp import IPKernelApp

        quiet = ["--HistoryManager.enabled=False", "--IPKernelApp.parent_handle=1"]
        app = IPKernelApp.instance()
        app.initialize(["-f", os.fsdecode(file), *quiet])
        _connect_matplotlib(app.shell)
        app.start()
        # Its tidy end can wait for ever for a thread that waits for it; the process ends here anyway.
        atexit.unregister(app.close)
        code = 0
    except Exception:
        traceback.print_exc()  # into the log
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)


def _forget_the_past() -> None:
    """Undo what a fork shares and a new interpreter would not."""
    np.random.seed()  # kernels with the same state would all draw the same "random" numbers
    random.seed()
    for exit_function in list(getattr(weakref.finalize, "_registry", ())):  # PyTorch would take back its operators
        exit_function.atexit = False
    if not sys.flags.safe_path:
        sys.path.pop(0)  # the folder of the program that started the sweep


def _connect_matplotlib(shell: Any) -> None:
    """Inline figures: the backend connects to its kernel when it is imported, which happened before the fork."""
    if (backend := sys.modules.get("matplotlib_inline.backend_inline")) is not None:
        from IPython.core.pylabtools import activate_matplotlib

        name = f"module://{backend.__name__}"
        activate_matplotlib(name)
        backend.configure_inline_support(shell, name)


def _end_with_parent(pipe: int, folder: Path) -> None:
    """Wait until the parent's end of the pipe closes; then take the private folder and all child processes along."""
    while os.read(pipe, 1):
        pass
    remove_folder(folder)
    os.killpg(os.getpgrp(), signal.SIGKILL)
