"""Made by `make client`: see .ci/client_generator/."""
