"""The routes of the console's session: who is signed in, sign in, sign out."""

from importlib.metadata import version

from fastapi import Request, Response
from pydantic import BaseModel, Field

from opposable.models.profile import Calling, get_profile
from opposable.web.api.dependencies import ApiRouter, PrincipalDep, ServiceDep
from opposable.web.console_files import SESSION_COOKIE
from opposable.web.errors import bad_input_error, error_responses

router = ApiRouter(prefix="/api/session", tags=["service"])
SESSION_SECONDS = 30 * 24 * 3600


class ModelProfileResponse(BaseModel):
    """How a model is used, as `opposable models check` measured it or by default."""

    model_config = {"from_attributes": True}

    calling: Calling
    assisted: bool = Field(description="Whether assistance for small models is on.")
    images: bool = Field(description="Whether the model sees images and files.")
    image_placeholders: bool = Field(description="Whether a short text replaces images and files.")
    context: int | None = Field(description="The context window in tokens; null if unknown.")


class SessionResponse(BaseModel):
    """The API key of the request, and what the service offers to it."""

    name: str = Field(description="The name of the key; owner without keys.", examples=["front end"])
    key_id: str = Field(description="The id of the key; empty without a stored key.")
    scopes: list[str]
    models: list[str] = Field(description="The names of the models; the first is the default.")
    profiles: dict[str, ModelProfileResponse] = Field(description="How each model is used.")
    version: str
    has_key: bool = Field(description="Whether the request carried a key.")


@router.get("", responses=error_responses(), summary="Get the session")
async def get_session(request: Request, service: ServiceDep, principal: PrincipalDep) -> SessionResponse:
    """Get the name and scopes of the API key, the models and the version."""
    return SessionResponse(
        name=principal.name,
        key_id=principal.key_id,
        scopes=sorted(principal.scopes),
        models=list(service.models),
        profiles={
            name: ModelProfileResponse.model_validate(get_profile(model)) for name, model in service.models.items()
        },
        version=version("opposable"),
        has_key="authorization" in request.headers,
    )


@router.post("", responses=error_responses(), summary="Sign in to the console")
async def sign_in(
    request: Request, service: ServiceDep, principal: PrincipalDep, response: Response
) -> SessionResponse:
    """Store the API key of the header `Authorization` in a cookie that scripts cannot read."""
    key = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not key:
        raise bad_input_error("Send the API key in the header: Authorization: Bearer KEY.")
    response.set_cookie(
        SESSION_COOKIE,
        key,
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return await get_session(request, service, principal)


@router.delete("", status_code=204, responses=error_responses(), summary="Sign out of the console")
async def sign_out() -> Response:
    """Delete the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
    return response
