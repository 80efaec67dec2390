"""Split inference: a client keeps the ends of a network, a server runs the middle and looks on."""
