"""The originals' own forms, so that their clients work unchanged.

Everything here exists because an original did it so. It is thin: each rule of behaviour is a
layer's. The server and the command line import it, and nothing else does.
"""
