"""Meduza, unchanged: messages over RESP, control paths over HTTP, its client and its command."""
