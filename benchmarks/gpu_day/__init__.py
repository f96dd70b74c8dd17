"""A day on a machine with a GPU and a hub: `make gpu` asks real checkpoints and packs one file."""
