"""The commands beside the main job, one file each."""
