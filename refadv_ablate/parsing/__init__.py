"""How an answer is read: the final answer in a text, boxes in it, their coordinate frame, and the score."""
