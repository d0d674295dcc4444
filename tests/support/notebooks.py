"""Run notebooks and save them as the repository stores them: `python -m tests.support.notebooks [NOTEBOOK…]`.

A stored notebook has its outputs and static pictures. It has no widget state, because that contains the front end's
code and the trace (some hundred kilobytes), and no times of execution. Without arguments: all of `notebooks/`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"


def stored(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without widget state, execution times and versions of this machine's Python."""
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook["cells"]:
        cell["metadata"].pop("execution", None)
        if cell["cell_type"] == "code":
            cell["outputs"] = joined([one for one in map(without_widget, cell["outputs"]) if one is not None])
    return notebook


def joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs with adjacent texts of one stream joined, because the clock decides where a stream is cut."""
    result: list[dict[str, Any]] = []
    for output in outputs:
        same = result and output["output_type"] == "stream" == result[-1]["output_type"]
        if same and output["name"] == result[-1]["name"]:
            texts = ("".join(one["text"]) for one in (result[-1], output))
            result[-1] = {**output, "text": "".join(texts)}
        else:
            result.append(output)
    return result


def without_widget(output: dict[str, Any]) -> dict[str, Any] | None:
    """The output without its reference to a widget; None if only the text of a widget would remain."""
    data = output.get("data", {})
    if WIDGET not in data:
        return output
    left = {kind: value for kind, value in data.items() if kind != WIDGET}
    return {**output, "data": left} if set(left) - {"text/plain"} else None


def run(path: Path) -> None:
    """Execute a notebook in its own folder, and store it."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    path.write_text(json.dumps(stored(notebook), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    for path in map(Path, arguments) if arguments else sorted(FOLDER.glob("*.ipynb")):
        print(path.name, flush=True)
        run(path)


if __name__ == "__main__":
    main(sys.argv[1:])
