"""What a server counts about itself: its ``/metrics`` page, read before and after a measurement, in our words."""
