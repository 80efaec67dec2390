"""The security index c(M) of COPA, layer by layer."""
