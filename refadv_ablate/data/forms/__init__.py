"""The forms in which published data sets lie on disk or on the hub, each read into plain rows."""
