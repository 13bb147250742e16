"""The public test kit: scripted models, model servers on loopback, fakes of the ports, conformance suites, fixtures."""
