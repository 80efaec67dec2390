"""Ground that both halves stand on; it imports neither of them, and no torch."""


class UserError(Exception):
    """Say what was expected, what came and what to do; people read the message as it is."""
