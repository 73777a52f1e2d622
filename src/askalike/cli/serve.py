"""``askalike serve`` and ``keys``: a forum over HTTP, with a page, and who may use it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import asdict

from askalike.cli.arguments import ForumArgument, JsonOption, command
from askalike.cli.display import console, print_whole
from askalike.cli.messages import messages, print_json, safe
from askalike.errors import MissingExtraError, SettingError
from askalike.server.guards import Keys
from askalike.store import ForumLayout, open_store
from askalike.store.layout import forum_names


def serve(
    forum: Annotated[
        Path, typer.Argument(metavar="FORUM", help="The forum's folder, or a folder of forums.", show_default=False)
    ],
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port.", min=0, max=65535)] = 8765,
    workers: Annotated[int, typer.Option("--workers", help="Worker processes.", min=1, max=64)] = 1,
    threads: Annotated[int, typer.Option("--threads", help="Concurrent searches per process.", min=1, max=64)] = 4,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", help="A site whose pages may ask, as https://forum.example.org; repeatable."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="A name under which a proxy passes requests on; keys are asked for then."),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy", help="A proxy's address or network: the clients that it names count; repeatable."
        ),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Require no API key at any address.")] = False,
    open_read: Annotated[
        bool, typer.Option("--open-read", help="Require an API key for changes only, at any address.")
    ] = False,
    rate: Annotated[float, typer.Option("--rate", help="Requests per second of one client; 0: no limit.", min=0)] = 50,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds until a request times out.", min=0.1)] = 10,
    ask_url: Annotated[
        str,
        typer.Option(
            "--ask-url", help="Where the page leads with a new question; {title} in it stands for the question's title."
        ),
    ] = "",
    open_forums: Annotated[
        int, typer.Option("--open-forums", help="Of a folder of forums, open at once per process, at most.", min=1)
    ] = 100,
) -> None:
    """Serve a forum over HTTP, with a page and a widget.

    Searches, changes, feedback and duplicates are answered. It listens on this machine alone, at http://127.0.0.1:8765,
    unless told otherwise; for any other address, keys are needed: askalike keys makes them. Of a folder of forums, each
    answers under its own name, with its own keys, and is open while it is asked. Ctrl-C stops it when what is under way
    is done.
    """
    _need_extra()
    from askalike.server.settings import Limits, ServeSettings
    from askalike.server.workers import run

    settings = ServeSettings(
        forum=str(forum),
        host=host,
        port=port,
        workers=workers,
        allow_origins=tuple(allow_origin or ()),
        allow_hosts=tuple(allow_host or ()),
        trusted_proxies=tuple(trusted_proxy or ()),
        is_insecure=insecure,
        is_read_open=open_read,
        has_json_log=messages.is_json,
        ask_url=ask_url,
        limits=Limits(threads=threads, rate=rate, timeout_s=timeout, open_forums=open_forums),
    )
    if insecure:
        messages.say("warning: without API keys, everyone at this address may read and change the forum", "warning")
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    run(settings, lambda port: messages.say(f"http://{shown}:{port}  (Ctrl-C stops)"))


def _need_extra() -> None:
    missing = [name for name in ("uvicorn", "prometheus_client", "nh3") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"serving needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
            "serve",
        )


def keys(
    forum: ForumArgument,
    add: Annotated[
        Literal["read", "write"] | None,
        typer.Option("--add", help="Create a key for reading, or for writing (and reading).", show_default=False),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Whose key it is; for people.")] = "",
    remove: Annotated[str, typer.Option("--remove", help="Revoke the key with this id.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Make, list and revoke the keys of a forum's service.

    The keys of a folder of forums are taken for each of them, beside its own.

    A key is shown once, when it is made; its hash alone is stored. A service that is running takes note at once.
    """
    if add and remove:
        raise SettingError("both of --add and --remove were given", "give one of them")
    if name and not add:
        raise SettingError("--name goes with --add alone", "say --add read or --add write")
    if not forum_names(forum):
        open_store(ForumLayout(forum)).close()  # there has to be a forum
    stored = Keys(forum)
    secret = ""
    if add:
        key, secret = stored.add(name, add)
    elif remove:
        stored.remove(remove)
    if as_json:
        print_json({"key": secret} | asdict(key) if add else stored.all())
    elif add:
        print_whole(secret)
        messages.note(f"key {key.id} may {key.may}; it is not shown again")
    else:
        listed = stored.all()
        if not listed:
            print_whole(f"no keys; {command('keys', forum, '--add', 'read')} makes one (or --add write)")
        for key in listed:
            console.print(f"{key.id}  {key.may:5}  {key.created}  {safe(key.name)}", markup=False)
