"""The picture of where a network leaks."""

from semsim.reporting.export import svg
from semsim.systems.audit.figure import leak_figure
from semsim.systems.audit.security_index import CIFAR, CNN3, FullyConnected, security_index


def test_what_is_drawn_is_the_index():
    figure = leak_figure(security_index(CNN3[1], CIFAR), "CNN3")
    frame = figure.frame
    assert list(frame["known"]) == [3072, 867]
    assert list(frame["hidden"]) == [0, 4533]
    assert list(frame["contribution"]) == [0.0, -2266.5]
    assert figure.title == "Values that CNN3 hides from the attacker: c(M) = −2,266.5"


def test_bars_are_as_long_as_the_numbers():
    figure = leak_figure(security_index(CNN3[2], CIFAR), "CNN3").draw(183.0)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == [1602, 300, 1470, 1050]


def test_a_page_gets_text_in_its_own_colour():
    drawn = svg(leak_figure(security_index(CNN3[1], CIFAR), "a<b"), live=True)
    assert "currentColor" in drawn
    assert "a&lt;b" in drawn
    assert "−2,266.5" in drawn


def test_a_network_without_convolutions_is_told():
    index = security_index([FullyConnected(outputs=10)], CIFAR)
    assert "every value is determined" in svg(leak_figure(index, "it"), live=True)
