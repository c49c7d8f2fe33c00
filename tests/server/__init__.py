"""The doors of the server, tried from outside."""
