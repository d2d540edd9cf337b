from templates import escape


def test_angle_brackets():
    assert escape("<b>") == "&lt;b&gt;"


def test_ampersands_first():
    assert escape("a & <b") == "a &amp; &lt;b"
