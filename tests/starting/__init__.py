"""The starter kit."""
