"""Accounts that may run studies, sessions, invitations; the web and commands come in."""
