"""The HTTP API of Flux, Artsy's event server, for its existing clients."""
