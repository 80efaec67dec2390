"""The audit of a network by itself: the security index c(M) of COPA and what it advises."""
