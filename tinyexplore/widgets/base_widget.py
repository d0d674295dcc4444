"""The base class of all widgets: a widget is displayed beside a static picture, which remains where no widget runs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from html import escape
from typing import Any
from uuid import uuid4

import anywidget
import traitlets


class PicturedWidget(anywidget.AnyWidget):
    """A widget with a static picture (an SVG, or a function that makes one).

    It displays two outputs: the picture and the widget, which hides the picture while it is alive. The picture is an
    image in HTML that nbconvert, GitHub and the sanitiser of an untrusted notebook keep.

    picture: its name in the page.
    """

    picture = traitlets.Unicode().tag(sync=True)

    def __init__(self, static: str | Callable[[], str] = "", **traits: Any) -> None:
        super().__init__(picture=uuid4().hex, **traits)
        self._static = static

    def svg(self) -> str:
        """Returns the static picture; "" if there is none."""
        return self._static if isinstance(self._static, str) else self._static()

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Returns the widget, with a stable text and the picture."""
        bundle = self._make_view(**options)
        if bundle is not None and (picture := self.svg()):
            bundle[0]["image/svg+xml"] = picture
        return bundle

    def _make_view(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Returns the widget with a stable text, without its picture, which may take long to draw."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/plain": repr(self)}, metadata

    def _ipython_display_(self) -> None:
        show(self, self.svg(), repr(self))


def show(widget: PicturedWidget, picture: str, text: str) -> None:
    """Displays a widget in IPython: the picture first, then the widget (its text if there are no widgets)."""
    from IPython.display import display

    if picture:
        display({"text/html": picture_html(picture, widget.picture, text), "text/plain": text}, raw=True)
    if (bundle := widget._make_view()) is not None:
        data, metadata = bundle
        display({**data, "text/plain": text}, metadata=metadata, raw=True)


def picture_html(svg: str, name: str, text: str) -> str:
    """Returns an SVG as an image in HTML. A sanitiser that drops `<svg>` keeps it, and so do viewers without
    widgets."""
    data = b64encode(svg.encode()).decode()
    return (
        f'<img class="tinyexplore-picture-{name}" alt="{escape(text)}" style="max-width:100%;height:auto" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


__all__ = ["PicturedWidget", "picture_html", "show"]
