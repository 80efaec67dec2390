"""Images times metrics, kept under a key; learning, pages and commands come in."""
