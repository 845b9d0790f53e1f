"""The command line: compose a configuration, plan it, run it, and say what went wrong."""
