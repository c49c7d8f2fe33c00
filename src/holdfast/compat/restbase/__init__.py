"""RESTBase's paths, request bodies and answers over HTTP, for its existing clients."""
