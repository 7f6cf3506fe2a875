"""Images and files in what a tool returned, for models that take them."""

from typing import Any

from opposable.domain.content import FilePart, ImagePart, describe_media

_TYPES_WITHOUT_MEDIA = frozenset({str, int, float, bool, type(None), dict})


def find_media(value: Any) -> tuple[ImagePart | FilePart, ...]:
    """Return the images and files of a value: itself, those of a list, or those in its attribute `media`."""
    if type(value) in _TYPES_WITHOUT_MEDIA:
        return ()
    if isinstance(value, ImagePart | FilePart):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(item for item in value if isinstance(item, ImagePart | FilePart))
    media = getattr(value, "media", ())
    return media if isinstance(media, tuple) and all(isinstance(item, ImagePart | FilePart) for item in media) else ()


def replace_media(value: Any) -> Any:
    """Return the value with a short description in place of each image or file."""
    if isinstance(value, ImagePart | FilePart):
        return describe_media(value)
    if isinstance(value, list | tuple):
        return [replace_media(item) for item in value]
    return value
