"""The security index c(M) of COPA, layer by layer; attacks, figures and pages come in."""
