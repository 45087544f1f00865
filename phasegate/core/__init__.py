"""The words that everything else speaks in; imports nothing of ours."""
