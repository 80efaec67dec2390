"""The science of SemSim Studio: reconstruct, score, learn, compare."""
