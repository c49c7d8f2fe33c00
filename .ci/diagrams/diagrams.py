"""Draws docs/diagrams/*.txt as docs/pictures/diagram-*.svg: `python .ci/diagrams/diagrams.py`.

A line of a diagram is one of these; columns and rows may be halves:

    title   TEXT
    box     NAME COLUMN ROW TEXT | SMALL TEXT
    arrow   FROM TO TEXT
"""

import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
SOURCES = ROOT / "docs" / "diagrams"
PICTURES = ROOT / "docs" / "pictures"

_CELL = (230, 110)  # of the grid, in pixels
_BOX = (170, 56)
_MARGIN = 20
_STYLE = """
    text { font: 14px system-ui, sans-serif; fill: #1f2933; text-anchor: middle }
    .small { font-size: 11px; fill: #52606d } .label { font-size: 12px; fill: #334e68 }
    .behind { stroke: #fff; stroke-width: 5px; paint-order: stroke }
    rect { fill: #f0f4f8; stroke: #486581; stroke-width: 1.5px }
    path { stroke: #486581; fill: none }
    marker path { fill: #486581 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e4e7eb } .small { fill: #9fb3c8 } .label { fill: #bcccdc }
      .behind { stroke: #1e2129 } rect { fill: #243b53; stroke: #829ab1 } path { stroke: #829ab1 }
      marker path { fill: #829ab1 }
    }
"""


class Box(NamedTuple):
    """A box by its middle."""

    x: float
    y: float
    text: str
    small: str


class Arrow(NamedTuple):
    """An arrow between two boxes."""

    begin: str
    end: str
    text: str


class Diagram(NamedTuple):
    """The content of a source."""

    title: str
    boxes: dict[str, Box]
    arrows: list[Arrow]


def read(source: str) -> Diagram:
    """Reads a source; a line that can't be read, or an arrow to nowhere, is a `ValueError`."""
    title, boxes, arrows = "", dict[str, Box](), list[Arrow]()
    for number, line in enumerate(source.splitlines(), 1):
        match line.split(maxsplit=1):
            case ["title", text]:
                title = text
            case ["box", rest]:
                name, column, row, text = rest.split(maxsplit=3)
                large, _, small = text.partition(" | ")
                x = _MARGIN + _BOX[0] / 2 + float(column) * _CELL[0]
                y = _MARGIN + _BOX[1] / 2 + float(row) * _CELL[1]
                boxes[name] = Box(x, y, large, small)
            case ["arrow", rest]:
                begin, end, *words = rest.split(maxsplit=2)
                arrows.append(Arrow(begin, end, " ".join(words)))
            case []:
                pass
            case _:
                raise ValueError(f"line {number} is no title, box or arrow: {line}")
    unknown = {name for arrow in arrows for name in arrow[:2]} - set(boxes)
    if unknown:
        raise ValueError(f"arrows lead to boxes that are not there: {sorted(unknown)}")
    return Diagram(title, boxes, arrows)


def draw(diagram: Diagram) -> str:
    """Returns the diagram as SVG, readable on light and on dark pages."""
    width = max(box.x for box in diagram.boxes.values()) + _BOX[0] / 2 + _MARGIN
    height = max(box.y for box in diagram.boxes.values()) + _BOX[1] / 2 + _MARGIN
    pairs = {(arrow.begin, arrow.end) for arrow in diagram.arrows}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" role="img" aria-label="{escape(diagram.title)}">',
        f"<title>{escape(diagram.title)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for arrow in diagram.arrows:
        # Two arrows between the same boxes stay apart.
        aside = 9 if (arrow.end, arrow.begin) in pairs else 0
        lines += _arrow(diagram.boxes[arrow.begin], diagram.boxes[arrow.end], arrow.text, aside)
    for box in diagram.boxes.values():
        lines += _box(box)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _box(box: Box) -> list[str]:
    x, y = box.x - _BOX[0] / 2, box.y - _BOX[1] / 2
    lines = [f'<rect x="{x:g}" y="{y:g}" width="{_BOX[0]}" height="{_BOX[1]}" rx="8"/>']
    lines.append(
        f'<text x="{box.x:g}" y="{box.y + (-2 if box.small else 5):g}">{escape(box.text)}</text>'
    )
    if box.small:
        small = escape(box.small)
        lines.append(f'<text class="small" x="{box.x:g}" y="{box.y + 16:g}">{small}</text>')
    return lines


def _arrow(begin: Box, end: Box, text: str, aside: float) -> list[str]:
    dx, dy = end.x - begin.x, end.y - begin.y
    length = (dx * dx + dy * dy) ** 0.5
    ox, oy = -dy / length * aside, dx / length * aside
    # From edge to edge: as far along the line as it stays within the box.
    inside = min(_BOX[0] / 2 / abs(dx) if dx else 1.0, _BOX[1] / 2 / abs(dy) if dy else 1.0)
    x1, y1 = begin.x + dx * inside + ox, begin.y + dy * inside + oy
    x2, y2 = end.x - dx * inside + ox, end.y - dy * inside + oy
    lines = [f'<path d="M{x1:.1f} {y1:.1f} {x2:.1f} {y2:.1f}" marker-end="url(#tip)"/>']
    if text:
        x, y = (x1 + x2) / 2 + 1.5 * ox, (y1 + y2) / 2 + 4 + 1.5 * oy
        lines.append(f'<text class="label behind" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')
    return lines


def drawn() -> dict[Path, str]:
    """Returns each picture with what it should hold."""
    return {
        PICTURES / f"diagram-{source.stem}.svg": draw(read(source.read_text()))
        for source in sorted(SOURCES.glob("*.txt"))
    }


if __name__ == "__main__":
    for path, content in drawn().items():
        path.write_text(content)
        print(path.relative_to(ROOT), file=sys.stderr)
