"""What exists because Flux, Artsy's event server, did it so: its HTTP API."""
