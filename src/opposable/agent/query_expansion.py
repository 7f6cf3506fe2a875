"""Keywords for a need, so that a full-text search finds tools by meaning and across languages."""

import logging

from opposable.domain.errors import ModelError
from opposable.domain.messages import assistant_message, system_message, user_message
from opposable.models.base import Model, ModelOptions, request_reply

MAX_NEED_CHARACTERS = 500

_PROMPT = (
    system_message(
        "List English search keywords for each request: what kind of tool would do it? Verbs and nouns with synonyms, "
        "without the details of the request."
    ),
    user_message("把这个文件夹压缩一下"),
    assistant_message("compress, zip, archive, pack, folder, directory, files"),
    user_message("Ist der Server in Köln gerade erreichbar?"),
    assistant_message("check, server, status, health, ping, reachable, online"),
    user_message("Erinnere mich am Freitag um 9 Uhr an die Blumen"),
    assistant_message("remind, reminder, notify, notification, schedule, task, date"),
    user_message("这三个人里谁的评分最高"),
    assistant_message("rating, score, compare, rank, review, highest"),
    user_message("make me laugh"),
    assistant_message("joke, humor, funny, entertainment"),
)

_OPTIONS = ModelOptions(stream=False, max_tokens=40, temperature=0, stop=("\n",))

log = logging.getLogger("opposable.agent")


async def expand_query(model: Model, need: str) -> str:
    """Return English keywords for a need in any language; "" if the model fails."""
    messages = [*_PROMPT, user_message(" ".join(need[:MAX_NEED_CHARACTERS].split()))]
    try:
        return (await request_reply(model, messages, (), _OPTIONS)).message.content.strip()
    except ModelError as error:
        log.warning("The search for tools uses the words of the task alone: %s", error)
        return ""
