"""Figures as PNG files."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.image import imsave

_DPI = 150
_MARGIN = 15  # pixels


def write_png(file: BinaryIO, figure: Figure) -> None:
    """Write a figure, cut to what is drawn and 0.1 inches around it.

    The result is that of ``figure.savefig(file, dpi=150, bbox_inches="tight")``, to a pixel at the edges. ``savefig``
    draws a figure twice, first to find what to cut, and is used only if something is drawn outside the figure.
    """
    figure.set_dpi(_DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    left, low, right, high = (round(_DPI * inches) for inches in figure.get_tightbbox().extents)
    height, width = pixels.shape[:2]
    if left < 0 or low < 0 or right > width or high > height:
        figure.savefig(file, dpi=_DPI, bbox_inches="tight", pad_inches=_MARGIN / _DPI, format="png")
    else:
        # the margin may extend beyond the figure
        around = np.pad(pixels, ((_MARGIN, _MARGIN), (_MARGIN, _MARGIN), (0, 0)), constant_values=255)
        cut = around[height - high : height - low + 2 * _MARGIN, left : right + 2 * _MARGIN]
        imsave(file, cut, format="png", dpi=_DPI)
    _forget_glyphs()


def _forget_glyphs() -> None:
    """Empty the fonts of mathematical text, such as that of logarithmic axes.

    Matplotlib 3.11 keeps every glyph that such text loads, some 10 KiB a figure, until a font is emptied.
    """
    for style in ("normal", "italic"):
        get_font(findfont(FontProperties(style=style))).clear()
