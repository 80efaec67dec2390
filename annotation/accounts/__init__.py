"""Who may run studies here: accounts, sessions, invitations; the web and commands come in."""
