"""A document as one self-contained page: no script, no font, no picture from elsewhere."""
