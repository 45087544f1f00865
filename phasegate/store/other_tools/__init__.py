"""Result files of other load tools, read as sessions: what they measured, in our words and units.

One module per tool; `reading` finds out which one a file needs. Every reader states where it learnt the tool's field
names and what the tool means by them, since "time per output token" is not the same number everywhere.
"""
