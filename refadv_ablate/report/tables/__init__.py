"""Tables of estimates, the paper's among them, and the formats in which they are written."""
