"""Fails unless the examples in the comments of headers are code that is compiled: each text between @code and
@endcode is what stands between the two marks "// [snippet name]" of a file, and each of those is shown once.

    check_snippets.py FILE HEADER ...
"""

import re
import sys
from pathlib import Path


def main(source, *headers):
    code = Path(source).read_text()
    snippets = {text: name for name, text in re.findall(r"// \[snippet (\w+)\]\n(.*?)// \[snippet \1\]\n", code, re.S)}
    shown = []
    for header in headers:
        for comment in re.findall(r"/// @code\n(.*?)/// @endcode\n", Path(header).read_text(), re.S):
            text = re.sub(r"^ */// ?", "", comment, flags=re.M)
            if text not in snippets:
                sys.exit(f"{header} shows code that is not in {source}:\n{text}")
            shown.append(snippets[text])
    if not snippets or sorted(shown) != sorted(snippets.values()):
        sys.exit(f"of the snippets {sorted(snippets.values())} these are shown: {sorted(shown)}")


main(*sys.argv[1:])
