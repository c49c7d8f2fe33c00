"""The originals' own forms, so that their clients work unchanged.

Everything here exists only because an original did it this way. It is thin: every rule of behaviour
is in a layer. Only the server and the command line import it.
"""
