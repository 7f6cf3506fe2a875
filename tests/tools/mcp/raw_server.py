"""A hand-written server of protocol 2025-06-18 that lists the tools of a file, well-formed or not.

With a text in place of a list, it refuses to start with this text. With a tool named `announces`, it announces a change
in one piece with each list, and has one more tool afterwards. A call of `enable` does so before its result.
"""

import json
import os
import sys
import time
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
    tools = json.loads(Path(sys.argv[1]).read_text())
    match message["method"]:
        case "initialize" if isinstance(tools, str):
            answer["error"] = {"code": -32000, "message": tools}
        case "initialize":
            answer["result"] = INFO
        case "tools/list":
            answer["result"] = {"tools": tools}
        case "tools/call" if message["params"]["name"] == "fails":
            answer["error"] = {"code": -32000, "message": "The disk is full."}
        case "tools/call" if message["params"]["name"] == "busy":
            Path(sys.argv[1]).with_name("busy.pid").write_text(str(os.getpid()))
            time.sleep(1000)
        case "tools/call" if message["params"]["name"] == "enable":
            Path(sys.argv[1]).write_text(json.dumps([*tools, {**tools[0], "name": f"late_{len(tools)}"}]))
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
            answer["result"] = {"content": [{"type": "text", "text": "enabled"}]}
        case "tools/call":
            if message["params"]["name"] == "noise":
                sys.stdout.buffer.write(f"调试 {os.environ.get('API_TOKEN')}\n".encode("gb18030"))
            answer["result"] = {"content": [{"type": "text", "text": "raw"}]}
        case _:
            answer["error"] = {"code": -32601, "message": "Method not found"}
    announcement = ""
    if message["method"] == "tools/list" and any(tool.get("name") == "announces" for tool in tools):
        Path(sys.argv[1]).write_text(json.dumps([*tools, {**tools[0], "name": f"late_{len(tools)}"}]))
        announcement = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) + "\n"
    sys.stdout.write(f"{json.dumps(answer)}\n{announcement}")
    sys.stdout.flush()
