import pytest
from made_analysis import empty_analysis, made_analysis


@pytest.fixture
def analysis():
    return made_analysis()


@pytest.fixture
def empty():
    return empty_analysis()
