"""What engines behind an HTTP server share: calls, retries, pace, budget, and the chat protocol."""
