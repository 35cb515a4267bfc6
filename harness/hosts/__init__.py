"""What runs anything anywhere: processes of this machine, and containers of its engine."""
