"""The experiment log: MLflow behind one interface, and what it is told of a comparison."""
