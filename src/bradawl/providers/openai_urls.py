"""URL and headers of requests to servers that follow OpenAI's conventions. Pure."""

from bradawl.providers.codec import Endpoint


def openai_target(endpoint: Endpoint, path: str, key_header: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """URL and headers of a request to `path` below the base URL, credentials included.

    A query of the base URL is kept at the end. The user's own headers take precedence.
    """
    base, has_query, query = endpoint.base_url.partition("?")
    url = base.rstrip("/") + path + (f"?{query}" if has_query else "")
    headers = {"content-type": "application/json", "accept": "text/event-stream", "user-agent": "bradawl"}
    if endpoint.api_key:
        headers[key_header] = f"Bearer {endpoint.api_key}" if key_header == "authorization" else endpoint.api_key
    headers.update((name.lower(), value) for name, value in endpoint.headers)
    return url, tuple(headers.items())
