"""Ground that both halves stand on; it imports neither of them, and no torch."""
