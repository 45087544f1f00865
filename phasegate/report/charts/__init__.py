"""Charts of a document as SVG: pure functions from values of the model to text, with a table of the same numbers.

Colours and fonts are classes, so that the page decides them for light, dark and print; text is text; nothing is
fetched. Each kind of mark differs in shape or pattern as well as in colour.
"""
