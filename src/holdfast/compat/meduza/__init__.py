"""Meduza's messages over RESP, its control paths over HTTP, its Python client, and `mdzctl`."""
