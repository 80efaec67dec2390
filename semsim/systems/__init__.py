"""Systems of sister papers, each from its settings to a reconstruction set: split and federated."""
