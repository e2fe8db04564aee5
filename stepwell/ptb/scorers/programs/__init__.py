"""Functions that are to pass tests: run where the tests are not, and tested where they never ran."""
