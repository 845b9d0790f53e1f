"""The command line: compose a configuration, plan it, run it and report errors."""
