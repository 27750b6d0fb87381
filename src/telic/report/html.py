"""A page of text, tables and figures: one self-contained HTML file, or Markdown beside figures."""

import io
import re
from html import escape
from pathlib import Path
from typing import Any

from telic.data.atomic_writes import atomic_path
from telic.report.table import Table

FIGURES = "\0figures"
"""Stands in Markdown for the folder of its figures until that is known."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d5dae0; --soft: #f4f6f8;
  --accent: #2456c5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --paper: #14171b; --line: #363d46;
  --soft: #1d2228; --accent: #8ab0ff; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; color: var(--ink);
  background: var(--paper); font: 16px/1.55 system-ui, sans-serif; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.note { border-left: 4px solid var(--accent); background: var(--soft); padding: .6rem 1rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
caption span { display: inline-block; position: sticky; left: 0;
  max-width: min(58rem, calc(100vw - 3.2rem)); }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
.text { text-align: left; } .long { white-space: normal; min-width: 9rem; }
thead th { background: var(--soft); }
@media (max-width: 30rem) { table { font-size: .85rem; } th, td { padding: .3rem .35rem; }
  .long { min-width: 7rem; } }
details { margin: 1rem 0; } summary { cursor: pointer; font-weight: 600; }
figure { margin: 1.5rem 0; } figure .plot { background: #fff; border-radius: 6px; padding: .5rem; }
figure svg { max-width: 100%; height: auto; display: block; margin: auto; }
caption small { font-size: .92em; font-weight: 400; }
figcaption { font-size: .92rem; }
nav ol { columns: 2 20rem; column-gap: 3rem; padding-left: 1.6rem; }
a { color: var(--accent); }
@media print { :root { font-size: 11px; } body { max-width: none; padding: 0; font-size: 1rem; }
  .page { break-before: page; } tr { break-inside: avoid; } }
"""


class Report:
    """Sections of text, tables and figures, written as one HTML file or as Markdown.

    Everything given is escaped; the HTML holds no script and asks for nothing over the network.

    Parameters
    ----------
    title : str
        The page's title.
    lead : str, optional
        A paragraph under it: what this is, and whether its data are simulated.
    contents : bool
        List the sections with links.
    contents_after : int
        Sections that stand before that list.

    Attributes
    ----------
    tables : list of Table
        In the order of the page.

    Examples
    --------
    >>> report = Report("Two and two", lead="A sum.")
    >>> report.section("Result")
    >>> report.table(Table("The sum", {"a": "", "b": "", "a + b": ""}, [[2, 2, 4]]))
    >>> "<td>4</td>" in report.html()
    True
    """

    def __init__(
        self, title: str, lead: str = "", *, contents: bool = False, contents_after: int = 0
    ) -> None:
        self.title = title
        self.tables: list[Table] = []
        self._contents = contents
        self._contents_after = contents_after
        self._sections: list[str] = []
        self._first_section = 0
        self._parts: list[str] = []
        self._markdown = [f"# {title}"]
        self._figures: list[tuple[str, str]] = []
        if lead:
            self.text(lead)

    def written_by(self, command: str) -> None:
        """Say at the end so far, in Markdown alone, which command writes the page anew."""
        self._markdown.append(f"Written by `{command}`; do not edit.")

    def section(self, title: str, *, new_page: bool = False) -> None:
        """Start a section, on a page of its own when printed if `new_page`."""
        self._sections.append(title)
        if len(self._sections) == self._contents_after + 1:
            self._first_section = len(self._parts)
        page = ' class="page"' if new_page else ""
        self._parts.append(f'<h2 id="s{len(self._sections)}"{page}>{escape(title)}</h2>')
        self._markdown.append(f"## {title}")

    def text(self, paragraph: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(paragraph)}</p>")
        self._markdown.append(_plain(paragraph))

    def note(self, paragraph: str) -> None:
        """Add a paragraph that must not be overlooked: a limit, a simulation, an assumption."""
        self._parts.append(f'<p class="note">{escape(paragraph)}</p>')
        self._markdown.append(f"**{_plain(paragraph)}**")

    def table(self, table: Table, *, folded: bool = False) -> None:
        """Add a table; a `folded` one shows its title only, until the reader opens it."""
        self.tables.append(table)
        self._parts.append(table.html(folded=folded))
        self._markdown.append(table.markdown())

    def figure(self, figure: Any, caption: str) -> None:
        """Add a matplotlib figure as inline SVG, and close it.

        Parameters
        ----------
        figure : matplotlib.figure.Figure
        caption : str
            Says what is seen; also the text alternative.
        """
        from matplotlib import pyplot, rc_context

        buffer = io.StringIO()
        # A fixed salt and no date: the same figure gives the same bytes.
        with rc_context({"svg.hashsalt": "telic", "svg.fonttype": "path"}):
            figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
        svg = buffer.getvalue()[buffer.getvalue().index("<svg") :]
        self._add_figure(re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S), caption)

    def figures_of(self, other: "Report") -> None:
        """Add the figures of another report."""
        for svg, caption in other._figures:
            self._add_figure(svg, caption)

    def _add_figure(self, svg: str, caption: str) -> None:
        self._figures.append((svg, caption))
        self._markdown.append(f"![{caption}]({FIGURES}/{len(self._figures)}.svg)\n\n*{caption}*")
        # Several SVGs on one page share one namespace of ids.
        number = len(self._parts)
        svg = re.sub(r'(id="|xlink:href="#|url\(#)', rf"\g<1>f{number}-", svg)
        label = escape(caption, quote=True)
        self._parts.append(
            f'<figure><div class="plot" role="img" aria-label="{label}">{svg}</div>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def html(self) -> str:
        """Return the page as a string."""
        title = escape(self.title)
        links = "".join(
            f'<li><a href="#s{i}">{escape(section)}</a></li>\n'
            for i, section in enumerate(self._sections, start=1)
        )
        parts = self._parts.copy()
        if self._contents:
            nav = f'<nav aria-label="Contents"><ol>{links}</ol></nav>'
            parts.insert(self._first_section, nav)
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head>"
            f"<body><h1>{title}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
        )

    def markdown(self, figures: str = "figures") -> str:
        """Return the page as Markdown, its figures as links into a folder."""
        text = "\n\n".join(self._markdown) + "\n"
        text = re.sub("<(?=[A-Za-z/!?])", "&lt;", text)  # a name must not be taken for HTML
        return text.replace(f"({FIGURES}/", f"({figures}/")

    def as_json(self) -> dict[str, Any]:
        """Return title and tables, numbers in full, as JSON takes them."""
        return {"title": self.title, "tables": [table.as_json() for table in self.tables]}

    def write(self, path: str | Path) -> None:
        """Write the page, whole or not at all: as Markdown where the name ends in .md, else HTML.

        The figures of ``page.md`` go to the folder ``page`` beside it.
        """
        path = Path(path)
        as_markdown = path.suffix == ".md"
        if as_markdown and self._figures:
            with atomic_path(path.with_suffix("")) as temporary:
                temporary.mkdir()
                for number, (svg, _) in enumerate(self._figures, start=1):
                    (temporary / f"{number}.svg").write_text(svg, encoding="utf-8")
        with atomic_path(path) as temporary:
            text = self.markdown(path.stem) if as_markdown else self.html()
            temporary.write_text(text, encoding="utf-8")


def _plain(paragraph: str) -> str:
    """Return a paragraph in Markdown, whose asterisks, as in P*, are no marks."""
    return paragraph.replace("*", r"\*")
