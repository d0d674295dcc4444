"""Measures the longest tasks of a page's main thread in CPU time, which other processes do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CATEGORIES = ["disabled-by-default-devtools.timeline", "__metadata"]


def longest_task_ms(browser: Any, act: Callable[[], None]) -> float:
    """Return the milliseconds of the longest task of any page's main thread during `act()`."""
    events: list[dict[str, Any]] = []
    devtools = browser.new_browser_cdp_session()
    ended: list[object] = []
    devtools.on("Tracing.dataCollected", lambda part: events.extend(part["value"]))
    devtools.on("Tracing.tracingComplete", lambda end: ended.append(end))
    config = {"includedCategories": CATEGORIES}
    devtools.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": config})
    act()
    devtools.send("Tracing.end")
    helper_page = browser.new_page()
    while not ended:
        helper_page.wait_for_timeout(20)
    helper_page.close()
    devtools.detach()
    names = [event for event in events if event["name"] == "thread_name"]
    main = {(event["pid"], event["tid"]) for event in names if event["args"]["name"] == "CrRendererMain"}
    tasks = [event for event in events if event["name"] == "RunTask" and (event["pid"], event["tid"]) in main]
    return max(task.get("tdur", 0) for task in tasks) / 1e3  # a task that the end cut off has no duration
