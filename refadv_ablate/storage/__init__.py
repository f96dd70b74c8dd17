"""What is kept on disk: answers, records, JSON Lines, and the repair of a damaged store."""
