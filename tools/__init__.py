"""What the replica can do: one file a tool, and the registry that lists them."""
