"""How a model is asked: prompts, Set-of-Marks, candidate boxes, and published evaluation protocols."""
