"""The task of the real clients with LiteLLM, run by the Python of its own environment.

python litellm_client.py URL MODEL API      API is chat, chat-streamed, responses or messages

Reads the task and the tools as one line of JSON. For each call of a tool it prints a line, and reads the result as the
next line. The last line that it prints is the answer.
"""

import json
import sys
from typing import Any

import litellm

CHANNEL, sys.stdout = sys.stdout, sys.stderr  # LiteLLM prints to the standard output


def run_tool(name: str, arguments: str) -> str:
    """Have the test run a tool."""
    print(json.dumps({"name": name, "arguments": json.loads(arguments)}), file=CHANNEL, flush=True)
    return str(json.loads(sys.stdin.readline()))


def chat(model: str, options: dict[str, Any], system: str, task: str, tools: list[Any]) -> str:
    """Complete the task with chat completions, or the messages of Anthropic."""
    history: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": task}]
    for _ in range(6):
        reply = litellm.completion(model=model, messages=history, tools=tools, **options)
        if options.get("stream"):
            reply = litellm.stream_chunk_builder(list(reply), messages=history)
        message = reply.choices[0].message
        history.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or ""
        for call in message.tool_calls:
            content = run_tool(call.function.name, call.function.arguments)
            history.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return ""


def respond(model: str, options: dict[str, Any], system: str, task: str, tools: list[Any]) -> str:
    """Complete the task with responses."""
    items: list[Any] = [{"role": "user", "content": task}]
    flat = [{"type": "function", **tool["function"]} for tool in tools]
    for _ in range(6):
        response = litellm.responses(model=model, input=items, instructions=system, tools=flat, **options)
        output = [item.model_dump(exclude_none=True) for item in response.output]
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            return "".join(part["text"] for item in output for part in item.get("content") or ())
        items += output
        for call in calls:
            result = run_tool(call["name"], call["arguments"])
            items.append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
    return ""


def main() -> None:
    """Complete the task and print the answer."""
    url, model, api = sys.argv[1:]
    given = json.loads(sys.stdin.readline())
    options: dict[str, Any] = {"api_base": url, "api_key": "none"}
    if api == "messages":
        options["api_base"] = url.removesuffix("/v1")
        answer = chat(f"anthropic/{model}", options, **given)
    elif api == "responses":
        answer = respond(f"openai/{model}", options, **given)
    else:
        answer = chat(f"openai/{model}", options | ({"stream": True} if api == "chat-streamed" else {}), **given)
    print(json.dumps(answer), file=CHANNEL, flush=True)


if __name__ == "__main__":
    main()
