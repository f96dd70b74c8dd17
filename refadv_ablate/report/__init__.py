"""Tables, figures, galleries and pages of what was found."""
