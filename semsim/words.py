"""Counts, lists and how good an attacked model was in words, as `semsim.base.words` has them."""

from semsim.base.words import agreeing as agreeing
from semsim.base.words import chance_in as chance_in
from semsim.base.words import counted as counted
from semsim.base.words import listed as listed
from semsim.base.words import percent as percent
from semsim.base.words import target_words as target_words
from semsim.base.words import words_of_test as words_of_test
