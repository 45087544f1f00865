"""What the documentation promises is what the code does."""
