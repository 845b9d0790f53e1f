"""What a configuration is: names, signatures, schema, defaults, plan, messages."""
