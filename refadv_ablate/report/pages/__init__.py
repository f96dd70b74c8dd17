"""HTML pages: the report of a sweep, galleries of examples, and their images."""
