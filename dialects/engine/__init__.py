"""What every dialect stands on. No file in here knows a dialect by name."""
