"""A hand-written server of protocol 2025-06-18 that lists the tools of a file, well-formed or not."""

import json
import sys
from pathlib import Path

INFO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            answer["result"] = INFO
        case "tools/list":
            answer["result"] = {"tools": json.loads(Path(sys.argv[1]).read_text())}
        case "tools/call":
            answer["result"] = {"content": [{"type": "text", "text": "raw"}]}
        case _:
            answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
