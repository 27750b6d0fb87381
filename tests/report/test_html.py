import json
import re
from html.parser import HTMLParser

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

from telic.report import Report, Table


def figure():
    drawing, axes = pyplot.subplots()
    axes.plot([0, 1], [1, 0], label="a & b")
    return drawing


class Seen(HTMLParser):
    """The elements of a page with their attributes, and its text, as a browser reads them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.labels = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.labels += [value for name, value in attributes if name == "aria-label"]
        # Cells of text and of numbers differ by their class.
        self.tags.append((tag, [name for name, _ in attributes if name != "class"]))

    def handle_endtag(self, tag):
        self.tags.append(("/" + tag, []))

    def handle_comment(self, data):
        self.tags.append(("comment", []))

    def handle_data(self, data):
        self.words.append(data)


def page_of(texts):
    """A report with a text of its own in every place that takes one."""
    given = iter(texts)
    report = Report(next(given), lead=next(given), contents=True)
    report.section(next(given))
    report.section(next(given), new_page=True)
    report.text(next(given))
    report.note(next(given))
    report.table(Table(next(given), {next(given): ""}, [[next(given)]]))
    report.table(Table(next(given), {next(given): ""}, [[next(given)]]), folded=True)
    drawing = pyplot.figure(figsize=(1, 1))
    report.figure(drawing, next(given))
    return report.html()


markup = st.text(
    st.sampled_from("<>&\"'/=!-;:. abip#x6"), min_size=1, max_size=12
) | st.sampled_from(
    ["<script>", "</p><i>", "<!--", "]]>", "&lt;", "&amp;amp;", '" onload="x', "</style>", "<b a='"]
)


@settings(max_examples=25, derandomize=True, phases=[Phase.generate])  # quick to fail
@given(st.lists(st.tuples(st.sampled_from("T6"), markup).map("".join), min_size=13, max_size=13))
def test_everything_given_is_read_as_it_was_given_and_makes_no_element(texts):
    places = [f"T({place})" for place in range(len(texts))]
    page, plain = Seen(page_of(texts)), Seen(page_of(places))
    assert page.tags == plain.tags
    assert page.labels[:-1] == plain.labels[:-1]
    assert page.labels[-1] == texts[-1]
    expected = "".join(plain.words)
    assert all(place in expected or place in plain.labels for place in places)
    for place, text in zip(places, texts, strict=True):
        expected = expected.replace(place, text)
    assert "".join(page.words) == expected


def test_a_report_asks_for_nothing_over_the_network_and_runs_nothing():
    report = Report("t")
    report.figure(figure(), "a line")
    page = report.html()
    assert "<script" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_a_figure_that_is_on_the_page_is_closed():
    open_before = pyplot.get_fignums()
    Report("t").figure(figure(), "a line")
    assert pyplot.get_fignums() == open_before


def test_the_same_figures_give_the_same_bytes_with_ids_of_their_own():
    def page():
        report = Report("t")
        report.figure(figure(), "one")
        report.figure(figure(), "two")
        return report.html()

    assert page() == page()
    ids = re.findall(r'\bid="([^"]+)"', page())
    assert len(ids) == len(set(ids))


def test_the_same_report_as_markdown():
    report = Report("A title", lead="What it is.")
    report.section("Numbers")
    report.note("Simulated: P* is 2 * 3.")
    report.table(Table("Two rows", {"a|b": "", "c": ".1f"}, [["x", 1.5], [None, 2]]))
    report.figure(figure(), "A line")
    assert report.markdown("drawn") == (
        "# A title\n\nWhat it is.\n\n## Numbers\n\n**Simulated: P\\* is 2 \\* 3.**\n\n"
        "*Two rows*\n\n"
        "| a\\|b | c |\n| --- | ---: |\n| x | 1.5 |\n| — | 2.0 |\n\n"
        "![A line](drawn/1.svg)\n\n*A line*\n"
    )


def test_a_page_in_markdown_says_what_writes_it():
    report = Report("t")
    report.written_by("make page")
    assert report.markdown() == "# t\n\nWritten by `make page`; do not edit.\n"


def test_a_page_is_written_as_it_is_shown(tmp_path):
    report = Report("t", lead="What it is.")
    report.write(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html()


def test_markdown_is_written_with_its_figures_beside_it(tmp_path):
    for text in ("first", "again"):
        report = Report("t", lead=text)
        report.figure(figure(), "one")
        report.figure(figure(), "two")
        report.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "again" in page
    for name in re.findall(r"\]\((.*?)\)", page):
        assert (tmp_path / name).read_text().startswith("<svg")
    assert sorted(p.name for p in (tmp_path / "page").iterdir()) == ["1.svg", "2.svg"]


def test_tables_are_kept_as_numbers_in_the_order_of_the_page():
    report = Report("t")
    tables = [Table(str(i), {"a": ".0f", "b": ""}, [[i + 0.25, None]]) for i in range(2)]
    for table in tables:
        report.table(table)
    assert report.tables == tables
    stored = json.loads(json.dumps(report.as_json()))
    assert [Table.from_json(one) for one in stored["tables"]] == tables


def test_long_text_wraps_in_its_cell():
    report = Report("t")
    words = ["x" * 21, "x" * 20]
    report.table(Table("", {"a": ""}, [[word] for word in words]))
    assert f'<td class="text long">{words[0]}</td>' in report.html()
    assert f'<td class="text">{words[1]}</td>' in report.html()


def test_contents_link_to_every_section_before_the_first_one():
    report = Report("t", lead="What it is.", contents=True)
    report.section("One & two")
    report.section("Three", new_page=True)
    page = report.html()
    assert page.index("What it is.") < page.index("<nav") < page.index("<h2")
    assert '<li><a href="#s1">One &amp; two</a></li>' in page
    assert '<h2 id="s2" class="page">Three</h2>' in page
    assert "<nav" not in Report("t").html()


def test_the_figures_of_another_report_are_taken_over(tmp_path):
    other = Report("Other")
    other.figure(figure(), "The first.")
    other.text("Left out.")
    other.figure(figure(), "The second.")
    report = Report("Own")
    report.figure(figure(), "Its own.")
    report.figures_of(other)
    report.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert re.findall(r"!\[(.*?)\]\(page/(\d)\.svg\)", page) == [
        ("Its own.", "1"),
        ("The first.", "2"),
        ("The second.", "3"),
    ]
    assert "Left out." not in page
    assert len(list((tmp_path / "page").iterdir())) == 3
    ids = re.findall(r' id="(.*?)"', report.html())
    assert len(set(ids)) == len(ids)


def test_markdown_holds_no_html_of_a_name():
    report = Report("Of <b>", lead="p < .001")
    report.table(Table("Weights", {"column": ""}, [["<img src=x>"], ["</td>"], ["<!--"]]))
    text = report.markdown()
    assert "p < .001" in text
    names = ("# Of &lt;b>", "| &lt;img src=x> |", "&lt;/td>", "&lt;!--")
    assert all(name in text for name in names)
