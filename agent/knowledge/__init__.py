"""The owner's files: read honestly, cut into passages, with a report on each file."""

from agent.knowledge.cutting import cut
from agent.knowledge.folder import files_in, load_knowledge, name_in, no_text_in, picture_in, read_file
from agent.knowledge.values import Document, FileReport, Knowledge, Reading
from agent.passages import Passage

EDITION = "1"
"""Names this way of reading and cutting: passages of an earlier one are read again."""

__all__ = [
    "EDITION",
    "Document",
    "FileReport",
    "Knowledge",
    "Passage",
    "Reading",
    "cut",
    "files_in",
    "load_knowledge",
    "name_in",
    "no_text_in",
    "picture_in",
    "read_file",
]
