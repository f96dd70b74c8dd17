"""The main job: compose, plan, ask, read, compare; a command's cells from start to table."""
