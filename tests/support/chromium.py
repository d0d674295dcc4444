"""Finds a Chromium for the browser tests, or installs one if the machine allows it.

`python tests/support/chromium.py` says which one it is; with `--install` it first tries to get one where there is
none: Debian's package as root, else playwright's own download. It ends with 0 either way, because the other tests
run without a browser; the test report says so loudly.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
MAC_APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
INSTALL_TIMEOUT_S = 600

# Quiet, without requests of its own, and able to start as root in a container.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
)


def find_chromium() -> str | None:
    """The program to start: $CHROMIUM, else one on the PATH, else one that playwright downloaded."""
    if named := os.environ.get("CHROMIUM"):
        found = shutil.which(named)
        if found is None:
            raise FileNotFoundError(f"CHROMIUM={named}: there is no such program; unset it or name one that runs")
        return found
    for name in NAMES:
        if found := shutil.which(name):
            return found
    for application in MAC_APPLICATIONS:
        if os.access(application, os.X_OK):
            return application
    return downloaded_by_playwright()


def downloaded_by_playwright() -> str | None:
    """The browser that `playwright install chromium` put in its cache, if it did."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.access(path, os.X_OK) else None


def install_chromium() -> None:
    """Try each installation method; failures are printed and do not raise."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        attempt(["apt-get", "update", "-q"], environment)
        if attempt(["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"], environment):
            return
    attempt([sys.executable, "-m", "playwright", "install", "chromium"], dict(os.environ))


def attempt(command: list[str], environment: dict[str, str]) -> bool:
    """Run `command` and return whether it succeeded; print its output only if it failed."""
    print("No Chromium yet; trying:", " ".join(command), flush=True)
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  did not work: {error}")
        return False
    if done.returncode != 0:
        print("  did not work:", *done.stdout.splitlines()[-3:], sep="\n    ")
    return done.returncode == 0


def main() -> None:
    if "--install" in sys.argv[1:] and find_chromium() is None:
        install_chromium()
    found = find_chromium()
    print(f"Browser tests use {found}" if found else no_chromium_notice(), flush=True)


def no_chromium_notice() -> str:
    return (
        "NO CHROMIUM FOUND: the browser tests are left out. Install one (Debian: apt-get install chromium; "
        f"elsewhere: {Path(sys.executable).name} -m playwright install chromium) or name it in CHROMIUM."
    )


if __name__ == "__main__":
    main()
