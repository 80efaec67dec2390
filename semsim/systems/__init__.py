"""Systems of sister papers, each from its settings to a set: split, federated, audit."""
