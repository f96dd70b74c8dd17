"""Links of the documents that lead out of docs/: on the site they are the path of the file, as text."""

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """A link to a file of the repository that is no page becomes its text; a file that isn't there stays."""
    folder, docs = Path(page.file.abs_src_path).parent, Path(config.docs_dir).resolve()

    def plain(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        outside = target.exists() and (docs not in target.parents or target.is_dir())
        return link[1] if outside else link[0]

    return LINK.sub(plain, markdown)
