"""Opens a panel of the explorer by clicks, as a reader does."""

from __future__ import annotations

from typing import Any

_GROUP = "(name) => document.querySelector(`.panel-tabs [data-group] [data-key=${name}]`).parentElement.dataset.group"


def open_panel(tab: Any, name: str) -> None:
    """Clicks its group, then its tab, and waits until its code is there."""
    group = tab.evaluate(_GROUP, name)
    tab.click(f".panel-tabs .groups [data-key={group}]")
    if name != group:
        tab.click(f".panel-tabs [data-group={group}] [data-key={name}]")
    tab.wait_for_selector(".low > .lazy-view[aria-busy]", state="detached")


def panels_with_tabs(tab: Any) -> list[str]:
    """The panels that can show something of the page's trace, in the order of their tabs."""
    names: list[str] = tab.evaluate(
        "[...document.querySelectorAll('.panel-tabs [data-group] [data-key]')].map((one) => one.dataset.key)"
    )
    return names
