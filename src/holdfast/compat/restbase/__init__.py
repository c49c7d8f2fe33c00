"""RESTBase, unchanged: its paths, request bodies and answers over HTTP."""
