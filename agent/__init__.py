"""The mind of the replica: the loop, the model, the persona. It knows no page, no phone and no tool by name."""
