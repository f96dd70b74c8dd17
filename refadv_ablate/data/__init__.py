"""Data sets: files that people have, in the forms in which they have them, as examples."""
