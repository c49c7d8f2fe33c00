"""Made by `make faces`: see .ci/faces/faces.py."""
