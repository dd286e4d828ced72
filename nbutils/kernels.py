"""Kernels for headless runs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager

__all__ = ["PrivateKernelManager"]


class PrivateKernelManager(AsyncKernelManager):
    """A kernel that talks over sockets in a temporary folder of its own.

    Kernels started at the same time can draw the same TCP port (papermill issue 511); files in a private folder cannot
    clash, and nobody else on the machine can connect to them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        folder = Path(tempfile.mkdtemp(prefix="k-"))
        super().__init__(*args, transport="ipc", ip=str(folder / "s"), connection_file=str(folder / "c.json"), **kwargs)
        self._private_folder = folder

    async def _async_cleanup_resources(self, restart: bool = False) -> None:
        """Remove the folder with the kernel's other resources."""
        await super()._async_cleanup_resources(restart=restart)
        if not restart:
            shutil.rmtree(self._private_folder, ignore_errors=True)
