"""The server's protocols, tried from outside."""
