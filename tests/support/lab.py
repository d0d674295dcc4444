"""A JupyterLab server for a browser test, and the actions of tests in it.

The server runs in temporary folders (no setting of the user's is read, nothing is saved into the repository),
without a token, on a free port of the loopback. `LabPage` drives it through JupyterLab's own commands and waits
on states, never on time.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import milliseconds, seconds

START_TIMEOUT_S = 120
RUN_TIMEOUT_S = 600

# Settings that would otherwise get in a test's way: the news question, and cells that are drawn only when scrolled to.
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none", "autoStartDefaultKernel": True},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}

_OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code')
    .map(cell => cell.model.outputs.toJSON())"""

_IDLE = "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"

_RUN_ALL = """() => {
    window.ranAllCells = false;
    window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.ranAllCells = true; });
}"""


_EVALUATE = """async expression => {
    const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
    const future = kernel.requestExecute({code: '', silent: true, user_expressions: {asked: expression}});
    const {asked} = (await future.done).content.user_expressions;
    return asked.status === 'ok' ? asked.data['text/plain'] : `${asked.ename}: ${asked.evalue}`;
}"""


@contextmanager
def jupyterlab(root: Path, state: Path) -> Iterator[str]:
    """The address of a JupyterLab that serves `root` and keeps its own files in `state`."""
    with _server("jupyterlab", "LabApp", root, state) as address:
        yield address


@contextmanager
def notebook7(root: Path, state: Path) -> Iterator[str]:
    """The address of a Notebook 7, which has JupyterLab's parts in another frame."""
    with _server("notebook", "JupyterNotebookApp", root, state) as address:
        yield address


@contextmanager
def _server(module: str, app: str, root: Path, state: Path) -> Iterator[str]:
    settings = state / "settings"
    for plugin, values in SETTINGS.items():
        path = settings / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    environment = {
        **os.environ,
        "IPYTHONDIR": str(state / "ipython"),
        "JUPYTER_CONFIG_DIR": str(state / "config"),
        "JUPYTER_DATA_DIR": str(state / "data"),
        "JUPYTER_RUNTIME_DIR": str(state / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(state / "workspaces"),
    }
    port = free_port()
    command = [sys.executable, "-m", module, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={root}", "--IdentityProvider.token="]
    command += [f"--{app}.expose_app_in_browser=True"]
    address = f"http://127.0.0.1:{port}"
    log = state / "jupyterlab.log"
    with log.open("w") as stream:
        server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        try:
            await_server(server, address, log)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(timeout=seconds(30))
            except subprocess.TimeoutExpired:
                server.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_server(server: subprocess.Popen[bytes], address: str, log: Path, path: str = "/api/status") -> None:
    """Return once the server answers; fail with the end of its log if it does not."""
    deadline = time.monotonic() + seconds(START_TIMEOUT_S)
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}{path}", timeout=seconds(5)):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"no answer at {address}:\n{log.read_text()[-3000:]}")


class LabPage:
    """One notebook, open in one browser page."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.errors: list[str] = []
        self.foreign_requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note_request)

    def _note_request(self, request: Any) -> None:
        own = (self.address, self.address.replace("http", "ws", 1), "data:", "blob:")
        if not request.url.startswith(own):
            self.foreign_requests.append(request.url)

    def open(self, notebook: str, at: str = "lab/tree") -> None:
        """Load `notebook` in JupyterLab (`at` "notebooks": in Notebook 7) and wait until its kernel stands by."""
        self.page.goto(f"{self.address}/{at}/{notebook}")
        self.page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.content?.widgets?.length", timeout=milliseconds(120)
        )
        self.await_idle()

    def await_idle(self) -> None:
        self.page.wait_for_function(_IDLE, timeout=milliseconds(RUN_TIMEOUT_S))

    def run_all(self) -> None:
        """Run every cell and wait until the last has ended."""
        self.page.evaluate(_RUN_ALL)
        self.page.wait_for_function("() => window.ranAllCells", timeout=milliseconds(RUN_TIMEOUT_S))
        self.await_idle()

    def shut_down(self) -> None:
        """End the notebook's kernel to free its memory."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def outputs(self) -> list[list[dict[str, Any]]]:
        """The outputs of each code cell, as the notebook file would have them."""
        return list(self.page.evaluate(_OUTPUTS))

    def raised(self) -> list[str]:
        """The exceptions that cells raised, one text each."""
        return [
            f"{output['ename']}: {output['evalue']}"
            for cell in self.outputs()
            for output in cell
            if output["output_type"] == "error"
        ]

    def python(self, expression: str) -> str:
        """The repr of `expression` in the notebook's kernel."""
        return str(self.page.evaluate(_EVALUATE, expression))

    def await_python(self, expression: str, expected: str, timeout_s: float = 10) -> str:
        """Wait until the repr of `expression` is `expected`, because messages of the page reach the kernel late."""
        until = time.monotonic() + seconds(timeout_s)
        while (found := self.python(expression)) != expected and time.monotonic() < until:
            self.page.wait_for_timeout(50)
        return found

    def use_theme(self, name: str) -> None:
        """Switch to "JupyterLab Dark" or "JupyterLab Light"."""
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        light = "true" if name.endswith("Light") else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached", timeout=milliseconds(30))
        self.page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=milliseconds(30))
