"""Federated training between machines, over Flower; an extra that its command asks for."""
