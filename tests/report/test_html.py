import re

from matplotlib import pyplot

from telic.report import Report


def figure():
    drawing, axes = pyplot.subplots()
    axes.plot([0, 1], [1, 0], label="a & b")
    return drawing


def test_everything_given_is_escaped():
    report = Report("<script>", lead="a < b")
    report.table(["<i>"], [["<b>"]], caption="<u>")
    assert not re.search(r"<(script|i|b|u)>", report.html())


def test_a_report_asks_for_nothing_over_the_network_and_runs_nothing():
    report = Report("t")
    report.figure(figure(), "a line")
    page = report.html()
    assert "<script" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


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
    report.note("Simulated.")
    report.table(["a|b", "c"], [["x", 1.5], [None, 2]], caption="Two rows")
    assert report.markdown() == (
        "# A title\n\nWhat it is.\n\n## Numbers\n\n**Simulated.**\n\n*Two rows*\n\n"
        "| a\\|b | c |\n| --- | --- |\n| x | 1.5 |\n|  | 2 |\n"
    )


def test_long_text_wraps_in_its_cell():
    report = Report("t")
    report.table(["a"], [["Chronic obstructive pulmonary disease"], ["Dermatology"]])
    assert '<td class="text long">Chronic' in report.html()
    assert '<td class="text">Dermatology' in report.html()


def test_contents_link_to_every_section_before_the_first_one():
    report = Report("t", lead="What it is.", contents=True)
    report.section("One & two")
    report.section("Three", new_page=True)
    page = report.html()
    assert page.index("What it is.") < page.index("<nav") < page.index("<h2")
    assert '<li><a href="#s1">One &amp; two</a></li>' in page
    assert '<h2 id="s2" class="page">Three</h2>' in page
    assert "<nav" not in Report("t").html()
