"""HTTP: the labelling interface, sign-in, downloads, and the guard in front; pages come in."""
