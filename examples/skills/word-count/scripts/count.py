"""Count the lines, words and most frequent words of a text: JSON in, JSON out."""

import json
import re
import sys
from collections import Counter

text = json.load(sys.stdin)["text"]
words = re.findall(r"\w+", text.lower())
print(json.dumps({"lines": len(text.splitlines()), "words": len(words), "frequent": Counter(words).most_common(3)}))
