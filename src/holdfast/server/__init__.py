"""The server: RESP and HTTP on one store. It decodes calls, runs operations, encodes answers."""
