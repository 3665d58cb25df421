"""What is kept: conversations, contacts, questions, and the alerts that are still to go out."""
