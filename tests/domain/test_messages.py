"""Messages of a task."""

import pytest

from opposable.domain.errors import BadInput
from opposable.domain.messages import Message, to_task_messages, user_message


def test_a_task_is_a_text_or_messages():
    assert to_task_messages("hi") == to_task_messages([Message("user", "hi")]) == (user_message("hi"),)


@pytest.mark.parametrize("task", [None, 5, user_message("hi"), [{"role": "user", "content": "hi"}], {"task": "hi"}])
def test_other_tasks_are_refused_with_the_form_that_is_expected(task):
    with pytest.raises(BadInput, match=r"^A task is a text, or a list of messages such as .*, not "):
        to_task_messages(task)
