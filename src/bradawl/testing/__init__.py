"""Public test kit: a scripted model, a wire server, fakes for every port, conformance suites."""
