"""Charts are well-formed, stay within their frame, and show text as text."""

from xml.etree import ElementTree

from gametape.studio.line_chart import ChartSeries, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_points_lie_where_they_belong() -> None:
    chart = ElementTree.fromstring(
        line_chart("t", [ChartSeries("a", [0, 5000], [0.0, 1.0])], "x", "y", size=(500, 300))
    )
    line = chart.find(f"{SVG}polyline")
    assert line is not None
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in line.attrib["points"].split())
    assert 0 < x0 < x1 < 500
    assert 300 > y0 > y1 > 0
    labels = [text.text for text in chart.iter(f"{SVG}text")]
    assert {"t", "a", "x", "y", "1000", "5000", "0.2"} <= set(labels)


def test_text_is_escaped_and_nothing_is_an_empty_chart() -> None:
    hostile = '<script>"&'
    chart = ElementTree.fromstring(line_chart(hostile, [ChartSeries(hostile, [], [])], hostile, hostile))
    assert [text.text for text in chart.iter(f"{SVG}text")].count(hostile) == 4
    assert chart.attrib["aria-label"] == hostile
    assert ElementTree.fromstring(line_chart("t", [], "x", "y", y_range=None)).tag == f"{SVG}svg"
